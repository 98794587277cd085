//! Runs the scenario under `strace` and gathers what an image is built of and checked against.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use motet_store::engine::lmdb::{Durability, Lmdb, Options};

use super::disk::{Disk, Loss};
use super::inspect;
use super::known::{Known, replay};
use super::trace::Trace;

pub(crate) struct Recording {
    pub(crate) trace: Trace,
    /// The files as they were when the recording began: first those of the trace, in its order.
    pub(crate) before: Vec<(String, Vec<u8>)>,
    /// The table of readers as the process left it.
    pub(crate) readers: Vec<u8>,
    pub(crate) history: Vec<Known>,
}

/// Records the scenario.
pub(crate) fn record(durability: Durability) -> Recording {
    let probe = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    assert!(
        probe.is_ok_and(|probe| probe.status.success()),
        "strace is absent or may not trace: apt-get install strace"
    );
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let environment = base.join("store/env/main");
    drop(Lmdb::open(&environment, &Options::default()).unwrap());
    let found = files(&environment);
    trace_child(&base, durability);

    let text = fs::read_to_string(base.join("trace")).unwrap();
    let trace = Trace::parse(&text, environment.to_str().unwrap());
    let before = in_order(&trace, found);
    let readers = fs::read(environment.join("lock.mdb")).unwrap();
    assert_whole(&trace, &before, &environment);
    let history = history(&base, &environment);
    Recording { trace, before, readers, history }
}

fn trace_child(base: &Path, durability: Durability) {
    let child = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-y", "-xx", "-s", "268435456", "-e", CALLS, "-o"])
        .arg(base.join("trace"))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env("MOTET_DIR", base)
        .env("MOTET_DURABILITY", format!("{durability:?}"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
}

/// All files of a directory.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let file = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

/// First the files of the trace, in its order, empty where they were absent; then the others.
fn in_order(trace: &Trace, mut found: Vec<(String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    let mut ordered = Vec::new();
    for name in &trace.files {
        let place = found.iter().position(|(file, _)| file == name);
        ordered.push(place.map_or((name.clone(), Vec::new()), |place| found.swap_remove(place)));
    }
    ordered.extend(found);
    ordered
}

/// That nothing has been written but what was recorded: the recording gives the files as they are.
fn assert_whole(trace: &Trace, before: &[(String, Vec<u8>)], environment: &Path) {
    let mapped: BTreeSet<_> = trace.mapped_writable.iter().map(String::as_str).collect();
    assert_eq!(mapped, BTreeSet::from(["lock.mdb"]), "writes to a map are not recorded");
    let mut disk = Disk::new(before);
    for (moment, event) in trace.events.iter().enumerate() {
        disk.happens(moment, event);
    }
    for (name, bytes) in disk.after(&Loss::Nothing) {
        let now = fs::read(environment.join(name)).unwrap();
        assert!(name == "lock.mdb" || bytes == now, "{name} is not what was recorded");
    }
}

/// What the process saw of its log, and what came behind that.
fn history(base: &Path, environment: &Path) -> Vec<Known> {
    let seen = fs::read_to_string(base.join("changes")).unwrap();
    let mut history: Vec<Known> =
        seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let env = inspect::frozen(Lmdb::open(environment, &Options::default()).unwrap());
    let last = history.last().unwrap().clock;
    let rest = env.log().read(motet_store::Clock::new(last), usize::MAX).unwrap();
    history.extend(rest.iter().map(Known::from));
    let clocks: Vec<_> = history.iter().map(|change| change.clock).collect();
    assert_eq!(clocks, (1..=history.len() as u64).collect::<Vec<_>>(), "the log has a gap");
    assert!(!replay(&history).is_empty());
    history
}

const CALLS: &str = "trace=openat,write,writev,pwrite64,pwritev,pwritev2,lseek,ftruncate,truncate,\
                     fallocate,fdatasync,fsync,sync_file_range,msync,mmap,close,fcntl,dup,dup2,\
                     dup3,sendfile,copy_file_range,rename,renameat,renameat2,unlink,unlinkat";
