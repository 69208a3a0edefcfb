//! Tells the tests the platform that they are built for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=TARGET={}", std::env::var("TARGET").expect("cargo sets it"));
}
