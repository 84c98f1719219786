//! Cargo ignores build dependencies without a build script.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
