//! From the usual kubectl flags and the environment to a [`kube::Config`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use informer::Scope;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use secrecy::ExposeSecret;

/// Which server to ask, and as whom: the flags that kubectl has, with the same meaning.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArgs {
    /// The kubeconfig file; by default those in $KUBECONFIG, or ~/.kube/config, or the Pod's own
    /// account.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context to use.
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// The kubeconfig's cluster to use.
    #[arg(long, global = true, value_name = "NAME")]
    pub cluster: Option<String>,
    /// The kubeconfig's user to use.
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,
    /// The namespace; by default that of the context.
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
    /// The address of the API server.
    #[arg(short, long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// The bearer token to present.
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        env = "KUBECTL_INFORMER_TOKEN",
        hide_env_values = true
    )]
    pub token: Option<Token>,
    /// How long connecting, and asking what resources there are, may take. Watches live longer.
    #[arg(long, global = true, value_name = "DURATION", value_parser = crate::args::duration)]
    pub request_timeout: Option<Duration>,
    /// Do not check the server's certificate: anyone in between can read and change everything.
    #[arg(long, global = true)]
    pub insecure_skip_tls_verify: bool,
    /// The user to act as.
    #[arg(long = "as", global = true, value_name = "USER")]
    pub impersonate: Option<String>,
    /// A group to act as; may be repeated.
    #[arg(long = "as-group", global = true, value_name = "GROUP")]
    pub impersonate_groups: Vec<String>,
}

/// A token, which never shows in `Debug` output.
#[derive(Clone)]
pub struct Token(String);

impl From<String> for Token {
    fn from(token: String) -> Self {
        Self(token)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Why there is no connection to a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No kubeconfig anywhere, and not in a Pod.
    #[error(
        "no cluster is configured: {looked}; name a kubeconfig with --kubeconfig or a server with --server, or see `kubectl informer demo`, which needs no cluster"
    )]
    NotConfigured {
        /// Where was looked.
        looked: String,
    },
    /// A kubeconfig cannot be read.
    #[error("cannot read the kubeconfig {}: {cause}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        cause: String,
    },
    /// A kubeconfig is no kubeconfig.
    #[error("the kubeconfig {} is malformed: {cause}; compare it with `kubectl config view`", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, and where; never its content.
        cause: String,
    },
    /// A kubeconfig does not have what was asked for.
    #[error("the kubeconfig {files}: {cause}")]
    Incomplete {
        /// The files.
        files: String,
        /// What is missing, and what to do.
        cause: String,
    },
    /// A flag is wrong.
    #[error("{flag}: {cause}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// What is wrong with it.
        cause: String,
    },
    /// The bearer token cannot be sent.
    #[error(
        "the bearer token (of --token, $KUBECTL_INFORMER_TOKEN or the kubeconfig) holds a line break or another character that no header may hold; remove it"
    )]
    UnusableToken,
    /// The client cannot be made.
    #[error("cannot set up the connection to {url}: {cause}")]
    Client {
        /// The server.
        url: String,
        /// Why.
        cause: String,
    },
}

/// What of the process's environment matters.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `$KUBECONFIG`.
    pub kubeconfig: Option<OsString>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Whether this runs in a Pod (`$KUBERNETES_SERVICE_HOST`).
    pub in_pod: bool,
}

impl Environment {
    /// The environment of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            kubeconfig: std::env::var_os("KUBECONFIG").filter(|it| !it.is_empty()),
            home: std::env::home_dir(),
            in_pod: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
        }
    }
}

impl ConnectionArgs {
    /// The configuration that the flags and the environment describe.
    ///
    /// Retries are left to the informers, which back off visibly, and therefore switched off here.
    ///
    /// # Errors
    /// [`ConnectError`], which names the file or flag and says what to do.
    ///
    /// # Cancel safety
    /// Reads files and nothing else.
    pub async fn config(&self, environment: &Environment) -> Result<Config, ConnectError> {
        let mut config = match self.sources(environment)? {
            Source::Files(files) => self.read_files(&files).await?,
            Source::Pod => Config::incluster().map_err(|error| ConnectError::NotConfigured {
                looked: format!("this runs in a Pod, but without its account ({error})"),
            })?,
            Source::FlagsOnly => Config::new(self.server_uri()?.unwrap_or_default()),
        };
        if let Some(uri) = self.server_uri()? {
            config.cluster_url = uri;
        }
        if let Some(namespace) = &self.namespace {
            Scope::namespace(namespace).check().map_err(|error| ConnectError::Flag {
                flag: "--namespace",
                cause: error.to_string(),
            })?;
            config.default_namespace.clone_from(namespace);
        }
        // An empty one, as of a variable that is set to nothing, is none.
        if let Some(Token(token)) = self.token.as_ref().filter(|Token(token)| !token.is_empty()) {
            config.auth_info.token = Some(token.clone().into());
            config.auth_info.token_file = None;
        }
        if self.insecure_skip_tls_verify {
            config.accept_invalid_certs = true;
        }
        if let Some(user) = &self.impersonate {
            config.auth_info.impersonate = Some(user.clone());
        }
        if !self.impersonate_groups.is_empty() {
            if config.auth_info.impersonate.is_none() {
                let cause = "groups can only be acted as together with --as".to_owned();
                return Err(ConnectError::Flag { flag: "--as-group", cause });
            }
            config.auth_info.impersonate_groups = Some(self.impersonate_groups.clone());
        }
        if let Some(timeout) = self.request_timeout.filter(|it| !it.is_zero()) {
            config.connect_timeout = Some(timeout);
        }
        if config.auth_info.token.as_ref().is_some_and(|it| !is_header_text(it.expose_secret())) {
            return Err(ConnectError::UnusableToken);
        }
        config.default_retry = false;
        Ok(config)
    }

    /// A client for that configuration.
    ///
    /// # Errors
    /// [`ConnectError`] as for [`config`](Self::config).
    ///
    /// # Cancel safety
    /// Reads files and nothing else.
    pub async fn connect(&self, environment: &Environment) -> Result<Connection, ConnectError> {
        let config = self.config(environment).await?;
        let url = config.cluster_url.to_string();
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config.clone())
            .map_err(|error| ConnectError::Client { url: url.clone(), cause: error.to_string() })?;
        Ok(Connection { client, config, url, namespace })
    }

    fn sources(&self, environment: &Environment) -> Result<Source, ConnectError> {
        if let Some(file) = &self.kubeconfig {
            return Ok(Source::Files(vec![file.clone()]));
        }
        let mut looked = Vec::new();
        if let Some(list) = &environment.kubeconfig {
            let named: Vec<PathBuf> =
                std::env::split_paths(list).filter(|it| !it.as_os_str().is_empty()).collect();
            let existing: Vec<PathBuf> = named.iter().filter(|it| it.exists()).cloned().collect();
            if !existing.is_empty() {
                return Ok(Source::Files(existing));
            }
            looked.push(format!("no file of $KUBECONFIG ({}) exists", shown(&named)));
        } else {
            looked.push("$KUBECONFIG is not set".to_owned());
            let default = environment.home.as_ref().map(|home| home.join(".kube").join("config"));
            match default {
                Some(file) if file.exists() => return Ok(Source::Files(vec![file])),
                Some(file) => looked.push(format!("{} does not exist", file.display())),
                None => looked.push("there is no home directory".to_owned()),
            }
        }
        if self.server.is_some() {
            return Ok(Source::FlagsOnly);
        }
        if environment.in_pod {
            return Ok(Source::Pod);
        }
        looked.push("this does not run in a Pod".to_owned());
        Err(ConnectError::NotConfigured { looked: looked.join(", ") })
    }

    async fn read_files(&self, files: &[PathBuf]) -> Result<Config, ConnectError> {
        let mut merged = Kubeconfig::default();
        for file in files {
            let next = Kubeconfig::read_from(file).map_err(|error| of_file(file, &error))?;
            merged = merged.merge(next).map_err(|error| of_file(file, &error))?;
        }
        let options = KubeConfigOptions {
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.user.clone(),
        };
        let contexts: Vec<String> = merged.contexts.iter().map(|it| it.name.clone()).collect();
        let clusters: Vec<String> = merged.clusters.iter().map(|it| it.name.clone()).collect();
        if let Some(user) = &self.user
            && !merged.auth_infos.iter().any(|it| it.name == *user)
        {
            let users: Vec<String> = merged.auth_infos.iter().map(|it| it.name.clone()).collect();
            let cause = format!("it has no user {user:?}; it has {}", listed(&users));
            return Err(ConnectError::Incomplete { files: shown(files), cause });
        }
        Config::from_custom_kubeconfig(merged, &options).await.map_err(|error| {
            let cause = match error {
                KubeconfigError::CurrentContextNotSet => {
                    format!(
                        "no context is chosen; choose one with --context, of {}",
                        listed(&contexts)
                    )
                }
                KubeconfigError::LoadContext(name) => {
                    format!("it has no context {name:?}; it has {}", listed(&contexts))
                }
                KubeconfigError::LoadClusterOfContext(name) => {
                    format!("it has no cluster {name:?}; it has {}", listed(&clusters))
                }
                other => other.to_string(),
            };
            ConnectError::Incomplete { files: shown(files), cause }
        })
    }

    fn server_uri(&self) -> Result<Option<http::Uri>, ConnectError> {
        let Some(server) = &self.server else { return Ok(None) };
        let text =
            if server.contains("://") { server.clone() } else { format!("https://{server}") };
        let uri = text.parse::<http::Uri>().map_err(|error| ConnectError::Flag {
            flag: "--server",
            cause: format!(
                "{server:?} is no address: {error}; expected something like https://10.0.0.1:6443"
            ),
        })?;
        Ok(Some(uri))
    }
}

/// A client and what is worth telling of it.
#[derive(Clone)]
pub struct Connection {
    /// The client.
    pub client: Client,
    /// What it was made of.
    pub config: Config,
    /// The server's address.
    pub url: String,
    /// The namespace that is meant if none is named.
    pub namespace: String,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("url", &self.url)
            .field("namespace", &self.namespace)
            .finish()
    }
}

enum Source {
    Files(Vec<PathBuf>),
    Pod,
    FlagsOnly,
}

fn of_file(file: &Path, error: &KubeconfigError) -> ConnectError {
    let file = file.to_owned();
    match error {
        KubeconfigError::ReadConfig(cause, _) => {
            ConnectError::Unreadable { file, cause: cause.to_string() }
        }
        // The parser's own words quote the file, and with it the credentials.
        KubeconfigError::Parse(error) => {
            let cause = match error.location() {
                Some(at) => {
                    format!(
                        "not the YAML of a kubeconfig, at line {} column {}",
                        at.line(),
                        at.column()
                    )
                }
                None => "not the YAML of a kubeconfig".to_owned(),
            };
            ConnectError::Malformed { file, cause }
        }
        other => ConnectError::Malformed { file, cause: other.to_string() },
    }
}

fn is_header_text(text: &str) -> bool {
    http::HeaderValue::from_str(text).is_ok()
}

fn shown(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
    names.join(", ")
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests;
