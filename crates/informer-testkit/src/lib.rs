//! informer-testkit
