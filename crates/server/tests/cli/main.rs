//! The command line, through the real binary.

mod check;
mod explain;
mod files;
mod help;
mod live;
mod operators;
mod process;
mod terminal;
mod top;
