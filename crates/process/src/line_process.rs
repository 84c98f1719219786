//! Long-running programs that answer each line on stdin with a line on stdout.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::ChildStdin;

use crate::command::Command;
use crate::process::{Exit, Process, Stdout};

/// Maximum time from the end of stdout to the exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A running program that answers each line on stdin with a line on stdout. It and its descendants are killed on drop.
#[derive(Debug)]
pub struct LineProcess {
    process: Process,
    stdin: ChildStdin,
    stdout: BufReader<Stdout>,
}

/// The reason why a program did not answer. The program cannot be used again.
#[derive(Debug, thiserror::Error)]
pub enum LineProcessError {
    #[error("exited")]
    Exited(Exit),
    #[error("closed its stdout")]
    Closed,
    #[error("wrote a line of more than {limit} bytes to stdout")]
    TooLarge { limit: usize },
    #[error("cannot read its stdout: {0}")]
    Read(io::Error),
}

impl LineProcess {
    /// Starts a program. Must be called within an async runtime.
    pub fn start(command: &Command) -> io::Result<Self> {
        let (process, stdin, stdout) = command.start()?;
        Ok(Self { process, stdin, stdout: BufReader::new(stdout) })
    }

    /// Sends a line and returns the program's next line that is not blank, without its line break.
    pub async fn request(&mut self, line: &str, max_bytes: usize) -> Result<Vec<u8>, LineProcessError> {
        let request = [line.as_bytes(), b"\n"].concat();
        let (stdin, stdout, process) = (&mut self.stdin, &mut self.stdout, &self.process);
        // Write concurrently, since a program may answer before it has read everything.
        let write = async {
            // A write error is ignored: reading stdout reports the exit.
            if stdin.write_all(&request).await.is_ok() {
                stdin.flush().await.ok();
            }
        };
        let (answer, ()) = tokio::try_join!(read_line(stdout, process, max_bytes), async {
            write.await;
            Ok(())
        })?;
        Ok(answer)
    }

    /// Reads the next line that is not blank, without its line break.
    pub async fn read_line(&mut self, max_bytes: usize) -> Result<Vec<u8>, LineProcessError> {
        read_line(&mut self.stdout, &self.process, max_bytes).await
    }

    /// Whether the program has exited or wrote unrequested output. Output is only noticed once it has arrived.
    pub async fn is_unusable(&mut self) -> bool {
        if !self.stdout.buffer().trim_ascii().is_empty() {
            return true;
        }
        tokio::select! {
            biased;
            // Neither output nor the end of the output is expected between requests.
            read = self.stdout.fill_buf() => read.map_or(true, |bytes| bytes.is_empty() || !bytes.trim_ascii().is_empty()),
            () = std::future::ready(()) => false,
        }
    }

    /// Removes and returns the lines of stderr since the last call.
    pub async fn take_stderr(&self) -> String {
        self.process.take_stderr().await
    }
}

async fn read_line(
    stdout: &mut BufReader<Stdout>,
    process: &Process,
    max_bytes: usize,
) -> Result<Vec<u8>, LineProcessError> {
    let mut line = Vec::new();
    loop {
        let available = stdout.fill_buf().await.map_err(LineProcessError::Read)?;
        if available.is_empty() {
            let exit = process.exited_within(EXIT_TIMEOUT).await;
            return Err(exit.map_or(LineProcessError::Closed, LineProcessError::Exited));
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |end| end + 1);
        line.extend_from_slice(&available[..taken]);
        stdout.consume(taken);
        // The limit does not include the line break.
        if line.len() > max_bytes + 2 {
            return Err(LineProcessError::TooLarge { limit: max_bytes });
        }
        if end.is_some() {
            let trimmed = line.trim_ascii();
            if !trimmed.is_empty() {
                return Ok(trimmed.to_vec());
            }
            line.clear();
        }
    }
}
