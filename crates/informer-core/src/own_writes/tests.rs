//! Tests of the memory of own writes: single cases, and random histories.

mod histories;
mod tables;
