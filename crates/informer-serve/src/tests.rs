//! The endpoint against the test kit.

mod gateway;
