//! What processes use, and what the machine is, as the kernel tells it.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// CPU time of all threads of a process so far.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let text = read(&format!("/proc/{pid}/stat"))?;
    // The command's name may hold blanks and parentheses; the fields after it do not.
    let fields = text.rsplit_once(')').context("/proc/PID/stat names the command")?.1;
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().unwrap_or(0))
        .sum();
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// Bytes of a process that are in memory.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    let text = read(&format!("/proc/{pid}/status"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .with_context(|| format!("process {pid} has no memory: it has ended"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().context("VmRSS is in kB")?;
    Ok(kilobytes << 10)
}

/// Bytes in the queues of all TCP sockets of the machine.
pub(crate) fn socket_queue_bytes() -> Result<u64> {
    let text = read("/proc/net/sockstat")?;
    let words: Vec<_> = text
        .lines()
        .find(|line| line.starts_with("TCP:"))
        .context("/proc/net/sockstat tells of TCP")?
        .split_whitespace()
        .collect();
    let pages: u64 = words
        .iter()
        .position(|word| *word == "mem")
        .and_then(|at| words.get(at + 1))
        .and_then(|word| word.parse().ok())
        .context("/proc/net/sockstat tells of memory")?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// Raises this process's limit of open files as far as it may; children inherit it.
pub(crate) fn raise_descriptor_limit() -> Result<usize> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .context("cannot raise the limit of open files")?;
    Ok(limit.maximum.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX)))
}

/// One line on the machine and how busy it is.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    format!("{cores} cores, load average before the run {load}")
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}
