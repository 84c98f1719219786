//! The sandbox from outside: what it keeps on disk, and whether its promises hold.

#[cfg(unix)]
mod compiled;
mod doctor;
