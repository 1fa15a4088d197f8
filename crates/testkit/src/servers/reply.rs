//! The servers' protocol (RESP2), as much of it as the kit needs to ask one thing at a time.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A short word: `OK`.
    Simple(String),
    /// An error, with its code first: `NOAUTH Authentication required.`
    Error(String),
    /// A whole number.
    Integer(i64),
    /// Bytes.
    Bulk(Vec<u8>),
    /// Nothing.
    Nil,
    /// Several.
    Array(Vec<Self>),
}

impl Reply {
    /// The elements of an array; none of anything else.
    pub fn elements(&self) -> &[Self] {
        match self {
            Self::Array(elements) => elements,
            _ => &[],
        }
    }

    /// Whether it is an error.
    pub const fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }
}

/// As text: an array's elements one a line, nothing as nothing.
impl fmt::Display for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(text) | Self::Error(text) => formatter.write_str(text),
            Self::Integer(number) => write!(formatter, "{number}"),
            Self::Bulk(bytes) => formatter.write_str(&String::from_utf8_lossy(bytes)),
            Self::Nil => Ok(()),
            Self::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    let newline = if index == 0 { "" } else { "\n" };
                    write!(formatter, "{newline}{element}")?;
                }
                Ok(())
            }
        }
    }
}

/// A connection, without TLS.
pub struct Connection {
    stream: BufReader<Box<dyn Stream>>,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

impl Connection {
    /// Connects to a port of 127.0.0.1; the connection and every answer may take `patience`.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn tcp(port: u16, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream: BufReader::new(Box::new(stream)) })
    }

    /// Connects to a Unix socket; every answer may take `patience`.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn unix(path: &Path, patience: Duration) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream: BufReader::new(Box::new(stream)) })
    }

    /// Sends one command and reads its answer, which may be [`Reply::Error`].
    ///
    /// # Errors
    /// Those of the socket; `InvalidData` if the answer is not of the protocol.
    pub fn call<A: AsRef<[u8]>>(&mut self, command: &[A]) -> io::Result<Reply> {
        let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
        for argument in command {
            let argument = argument.as_ref();
            bytes.extend(format!("${}\r\n", argument.len()).bytes());
            bytes.extend(argument);
            bytes.extend(b"\r\n");
        }
        self.stream.get_mut().write_all(&bytes)?;
        self.read()
    }

    fn read(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end_matches(['\r', '\n']);
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| malformed(line))?;
        let number = || rest.parse::<i64>().map_err(|_| malformed(line));
        Ok(match kind {
            "+" => Reply::Simple(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(number()?),
            "$" => match usize::try_from(number()?) {
                Ok(length) => Reply::Bulk(self.read_bulk(length)?),
                Err(_) => Reply::Nil,
            },
            "*" => match usize::try_from(number()?) {
                Ok(count) => Reply::Array((0..count).map(|_| self.read()).collect::<Result<_, _>>()?),
                Err(_) => Reply::Nil,
            },
            _ => return Err(malformed(line)),
        })
    }

    fn read_bulk(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").finish_non_exhaustive()
    }
}

fn malformed(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not of the protocol: {line:?}"))
}
