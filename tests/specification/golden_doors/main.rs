//! The golden rows of `golden/`, through every door. A door that is built later runs them too.

#![cfg(test)]

mod engine;
mod http;
mod rows;
mod tower;
