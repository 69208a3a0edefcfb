//! The Helm chart and the kustomize base of `deploy/`: what they render, whether a real API server
//! accepts it, and whether the program does all that it should with the account that they give it.
//!
//! `deploy/helm/check` builds helm and runs them; without it they are skipped.

mod accepted;
mod golden;
mod helm;
mod kustomize;
mod pod;
mod rights;
mod values;
