//! kubectl-informer
