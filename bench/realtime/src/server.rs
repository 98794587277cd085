//! Servers in processes of their own.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

const START_LIMIT: Duration = Duration::from_secs(15);
const ASK_AGAIN: Duration = Duration::from_millis(2);

/// A server process; it ends with this value.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    binary: PathBuf,
    arguments: Vec<String>,
    child: Child,
    folder: TempDir,
}

impl Server {
    /// Starts `motet serve` with a configuration, to which the port is added.
    pub(crate) fn motet(binary: &Path, config: &str) -> Result<Self> {
        let folder = TempDir::new()?;
        let address = free_address()?;
        let file = folder.path().join("motet.toml");
        let port = address.port();
        fs::write(
            &file,
            format!("{config}\n[http_server]\nport = {port}\n\n[log]\nlevel = \"warn\"\n"),
        )?;
        let arguments = ["serve", "--config", &file.display().to_string()].map(str::to_owned);
        Self::start(binary, address, arguments.to_vec(), folder)
    }

    /// Starts a NATS server without clustering or persistence.
    pub(crate) fn nats(binary: &Path) -> Result<Self> {
        let address = free_address()?;
        let port = address.port().to_string();
        let arguments = ["-a", "127.0.0.1", "-p", &port].map(str::to_owned).to_vec();
        Self::start(binary, address, arguments, TempDir::new()?)
    }

    /// Starts a Redis server that keeps nothing on disk.
    pub(crate) fn redis(binary: &Path) -> Result<Self> {
        let (address, folder) = (free_address()?, TempDir::new()?);
        let port = address.port().to_string();
        let folder_path = folder.path().display().to_string();
        let arguments = ["--bind", "127.0.0.1", "--port", &port, "--dir", &folder_path]
            .into_iter()
            .chain(["--save", "", "--appendonly", "no"]);
        Self::start(binary, address, arguments.map(str::to_owned).collect(), folder)
    }

    fn start(
        binary: &Path,
        address: SocketAddr,
        arguments: Vec<String>,
        folder: TempDir,
    ) -> Result<Self> {
        let child = spawn(binary, &arguments, folder.path())?;
        let binary = binary.to_owned();
        let mut server = Self { address, binary, arguments, child, folder };
        server.listens()?;
        Ok(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL; returns when the process has ended.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill().context("ending the server")?;
        self.child.wait().context("waiting for the server's end")?;
        Ok(())
    }

    /// Starts again on the same port after [`Server::kill`]; returns when it listens.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.child = spawn(&self.binary, &self.arguments, self.folder.path())?;
        self.listens()
    }

    fn listens(&mut self) -> Result<()> {
        let begun = Instant::now();
        while TcpStream::connect_timeout(&self.address, START_LIMIT).is_err() {
            let name = self.binary.display();
            if let Some(status) = self.child.try_wait()? {
                let output = fs::read_to_string(self.folder.path().join("output.txt"));
                bail!("{name} ended while starting ({status}): {}", output.unwrap_or_default());
            }
            if begun.elapsed() > START_LIMIT {
                bail!("{name} does not listen on {}", self.address);
            }
            std::thread::sleep(ASK_AGAIN);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing left to do.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn spawn(binary: &Path, arguments: &[String], folder: &Path) -> Result<Child> {
    let output =
        fs::OpenOptions::new().create(true).append(true).open(folder.join("output.txt"))?;
    Command::new(binary)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("cannot start {}", binary.display()))
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
