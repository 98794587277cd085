//! A `motet serve` of one's own, on a free port.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_motet");
const START_LIMIT: Duration = Duration::from_secs(20);

/// Everybody may do everything; 100 publications of history.
pub(crate) const OPEN: &str = r#"
[client]
insecure = true
[http_api]
key = "key"
[channel.without_namespace]
presence = true
history_size = 100
history_ttl = "300s"
force_recovery = true
"#;

pub(crate) struct Server {
    /// Gone once it was waited for.
    child: Option<Child>,
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
}

impl Server {
    /// Starts a server with this configuration; the port is added to it.
    pub(crate) fn start(config: &str) -> Self {
        Self::start_with(config, &[])
    }

    pub(crate) fn start_with(config: &str, arguments: &[&str]) -> Self {
        Self::start_by(Command::new(BINARY), config, arguments)
    }

    /// Starts a server through a command that ends up being it.
    pub(crate) fn start_by(mut command: Command, config: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("motet.toml");
        std::fs::write(&file, config).expect("written");
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&file)
            .args(arguments)
            .current_dir(folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let stderr = child.stderr.take().expect("piped");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    // Nobody looks any more, but the pipe must not fill up.
                }
            }
        });
        let address = wait_for_address(&lines);
        Self { child: Some(child), address, folder }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().expect("it runs").id().to_string();
        let status = Command::new("kill").args([signal, &pid]).status().expect("kill runs");
        assert!(status.success());
    }

    /// Waits for the server to end; its exit code.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<i32> {
        let mut child = self.child.take().expect("it runs");
        let (sender, ended) = mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait()));
        let status = ended.recv_timeout(limit).expect("the server ends in time");
        status.expect("waited").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

fn wait_for_address(lines: &mpsc::Receiver<String>) -> SocketAddr {
    let mut log = String::new();
    loop {
        let line = lines.recv_timeout(START_LIMIT).unwrap_or_else(|_| panic!("no address: {log}"));
        if let Some((_, address)) = line.split_once("listening on ") {
            let address = address.trim().rsplit('/').next().unwrap_or_default();
            return address.parse().unwrap_or_else(|_| panic!("no address: {line}"));
        }
        log.push_str(&line);
    }
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).output().expect("the binary runs")
}
