//! Child processes that end: each has a time limit, and what it leaves behind is ended with it.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, Once};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// How long a child may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);
/// How much of a child's output is kept for reading its summary.
const KEPT_BYTES_MAX: usize = 4 << 20;

static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());
static IN_FOREGROUND: AtomicBool = AtomicBool::new(false);

/// What a child printed and whether it succeeded.
pub(crate) struct Outcome {
    pub(crate) success: bool,
    pub(crate) timed_out: bool,
    /// Standard output and standard error as they came, without colours.
    pub(crate) output: String,
}

/// Runs a child with its output on the terminal; fails when it fails.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<()> {
    let name = describe(command);
    let child = spawn(command.stdin(Stdio::null()), &name)?;
    let (status, timed_out) = wait(child, limit)?;
    judge(&name, status, timed_out, limit, "")
}

/// Runs a child silently and gives its standard output; its whole output is shown when it fails.
pub(crate) fn capture(command: &mut Command, limit: Duration) -> Result<String> {
    let name = describe(command);
    let mut child =
        spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()), &name)?;
    let text = Arc::new(Mutex::new(String::new()));
    let errors = Arc::new(Mutex::new(String::new()));
    let readers = [
        collect(child.stdout.take(), Arc::clone(&text), false),
        collect(child.stderr.take(), Arc::clone(&errors), false),
    ];
    let (status, timed_out) = wait(child, limit)?;
    join(&readers);
    let output = take(&text);
    let shown = format!("\n{}{}", take(&errors), if status.success() { "" } else { &output });
    judge(&name, status, timed_out, limit, shown.trim_end())?;
    Ok(output)
}

/// Runs a child with its output both on the terminal and collected.
pub(crate) fn tee(command: &mut Command, limit: Duration) -> Result<Outcome> {
    let name = describe(command);
    let mut child =
        spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()), &name)?;
    let text = Arc::new(Mutex::new(String::new()));
    let readers = [
        collect(child.stdout.take(), Arc::clone(&text), true),
        collect(child.stderr.take(), Arc::clone(&text), true),
    ];
    let (status, timed_out) = wait(child, limit)?;
    join(&readers);
    if timed_out {
        println!("{name}: ended after its limit of {} s", limit.as_secs());
    }
    Ok(Outcome { success: status.success() && !timed_out, timed_out, output: take(&text) })
}

/// Runs a child that talks with a person until it ends or the person ends it.
pub(crate) fn foreground(command: &mut Command) -> Result<()> {
    let name = describe(command);
    end_children_on_interrupt();
    IN_FOREGROUND.store(true, Ordering::SeqCst);
    let status = command.status().with_context(|| format!("cannot start {name}"));
    IN_FOREGROUND.store(false, Ordering::SeqCst);
    let status = status?;
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(())
}

fn judge(
    name: &str,
    status: ExitStatus,
    timed_out: bool,
    limit: Duration,
    shown: &str,
) -> Result<()> {
    if timed_out {
        bail!("{name} did not end within {} s{shown}", limit.as_secs());
    }
    if !status.success() {
        bail!("{name} failed ({status}){shown}");
    }
    Ok(())
}

fn describe(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or(&program).to_owned();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    let mut text = program;
    for argument in arguments.take(6) {
        text.push(' ');
        text.push_str(argument.lines().next().unwrap_or_default());
    }
    text
}

fn spawn(command: &mut Command, name: &str) -> Result<Child> {
    use std::os::unix::process::CommandExt as _;
    end_children_on_interrupt();
    let child = command.process_group(0).spawn().with_context(|| format!("cannot start {name}"))?;
    groups().push(Pid::from_child(&child));
    Ok(child)
}

/// Waits within the limit, then ends whatever of the child's group is left.
fn wait(mut child: Child, limit: Duration) -> Result<(ExitStatus, bool)> {
    let group = Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait()));
    let mut timed_out = false;
    let status = match receiver.recv_timeout(limit) {
        Ok(status) => status,
        Err(RecvTimeoutError::Timeout) => {
            timed_out = true;
            let _ = kill_process_group(group, Signal::TERM);
            receiver.recv_timeout(GRACE).or_else(|_| {
                let _ = kill_process_group(group, Signal::KILL);
                receiver.recv_timeout(GRACE)
            })?
        }
        Err(RecvTimeoutError::Disconnected) => bail!("the thread that waits for a child ended"),
    };
    // An error means that the group is empty, which is what is wanted.
    let _ = kill_process_group(group, Signal::KILL);
    groups().retain(|other| *other != group);
    Ok((status?, timed_out))
}

fn collect(
    stream: Option<impl Read + Send + 'static>,
    text: Arc<Mutex<String>>,
    show: bool,
) -> mpsc::Receiver<()> {
    let (done, receiver) = mpsc::channel::<()>();
    thread::spawn(move || {
        let _done = done;
        let Some(stream) = stream else { return };
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            let printable = String::from_utf8_lossy(&line);
            if show {
                let mut terminal = std::io::stdout().lock();
                let _ = terminal.write_all(printable.as_bytes());
                let _ = terminal.flush();
            }
            let mut text = text.lock().expect("no reader panics while it holds the text");
            if text.len() > KEPT_BYTES_MAX {
                let cut = text.ceil_char_boundary(KEPT_BYTES_MAX / 2);
                text.drain(..cut);
            }
            text.push_str(&without_colours(&printable));
            line.clear();
        }
    });
    receiver
}

/// Waits for the readers, but not for ever: a daemon that left the group may still hold a pipe.
fn join(readers: &[mpsc::Receiver<()>]) {
    for reader in readers {
        let _ = reader.recv_timeout(GRACE);
    }
}

fn take(text: &Mutex<String>) -> String {
    core::mem::take(&mut *text.lock().expect("no reader panics while it holds the text"))
}

fn groups() -> std::sync::MutexGuard<'static, Vec<Pid>> {
    GROUPS.lock().expect("nothing panics while it holds the list of groups")
}

fn end_children_on_interrupt() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let handler = ctrlc::set_handler(|| {
            for group in groups().iter() {
                let _ = kill_process_group(*group, Signal::TERM);
            }
            // A child in the foreground got the same signal; its end decides.
            if !IN_FOREGROUND.load(Ordering::SeqCst) {
                std::process::exit(130);
            }
        });
        if let Err(error) = handler {
            eprintln!("xtask: an interrupt will not end child processes: {error}");
        }
    });
}

/// The text without ANSI escape sequences.
pub(crate) fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            plain.push(character);
            continue;
        }
        if characters.next() == Some('[') {
            characters.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_taken_out() {
        assert_eq!(without_colours("\u{1b}[32;1mok\u{1b}[0m 3"), "ok 3");
    }

    #[test]
    fn a_child_that_does_not_end_is_ended_at_its_limit() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo started; exec tail -f /dev/null"]);
        let outcome = tee(&mut command, Duration::from_millis(300)).expect("the shell starts");
        assert!(outcome.timed_out && !outcome.success);
        assert_eq!(outcome.output, "started\n");
    }

    #[test]
    fn what_a_child_leaves_behind_does_not_hold_up_its_end() {
        let mut command = Command::new("sh");
        command.args(["-c", "tail -f /dev/null & echo done"]);
        let outcome = tee(&mut command, Duration::from_secs(30)).expect("the shell starts");
        assert!(outcome.success);
        assert_eq!(outcome.output, "done\n");
    }

    #[test]
    fn a_failing_child_is_an_error_that_shows_its_output() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo reason >&2; exit 3"]);
        let error = capture(&mut command, Duration::from_secs(30)).expect_err("it fails");
        assert!(error.to_string().contains("reason"), "{error}");
    }
}
