//! The tower door with real engines behind it: every test sets the clock by hand.

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod grpc;
#[cfg(test)]
mod headers;
#[cfg(test)]
mod router;
#[cfg(test)]
mod service;
