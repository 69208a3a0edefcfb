//! Adds resources to a stream of changes, if the caller may watch them.

use std::sync::Arc;

use informer::Resource;
use tokio::time::Instant;

use super::feed::{Feed, Held, Told};
use super::{ADD_AGAIN, Changes, No};
use crate::access::{Attributes, Refused};
use crate::audit::About;
use crate::collection::Collection;
use crate::collections::Unready;
use crate::definition::plain;
use crate::refusal::Refusal;

impl Changes {
    /// Adds a resource by name. The audit line names it even if it is refused.
    pub(super) async fn add_named(&mut self, about: &About) -> Result<Vec<Told>, No> {
        let mut resources = Vec::new();
        for name in self.query.resources.clone() {
            let resource = self.find(&name).await?;
            if !resources.contains(&resource) {
                resources.push(resource);
            }
        }
        let reviewed = resources.iter().map(|it| self.query.attributes(it, self.namespace_of(it)));
        about.set(reviewed.collect::<Vec<_>>());
        let mut told = Vec::new();
        for resource in resources {
            told.push(self.add(resource).await?);
        }
        Ok(told)
    }

    /// The namespace whose changes are sent; `None` for all.
    fn namespace_of(&self, resource: &Resource) -> Option<&str> {
        let held = self.endpoint.inner.collections.namespace();
        self.query.namespace.as_deref().or(held).filter(|_| resource.namespaced)
    }

    /// The resource that a name means. A caller without the right to `/` does not learn whether it
    /// exists.
    async fn find(&mut self, name: &str) -> Result<Resource, No> {
        match self.endpoint.inner.catalog.find_by_arg(name).await {
            Ok(resource) => Ok(resource),
            Err(refusal) => {
                let path = Attributes::of_path(&http::Method::GET, &format!("/{name}"));
                self.asker.may(path).await.map_err(No::Refused)?;
                Err(No::Refusal(refusal))
            }
        }
    }

    /// Adds all held collections that are not among the feeds and may be watched.
    ///
    /// Stops when a review fails; the collections that were added before are kept.
    pub(super) async fn add_new(&mut self) -> (Vec<Told>, Result<(), Refused>) {
        let mut told = Vec::new();
        for resource in self.addable() {
            match self.add(resource.clone()).await {
                Ok(begun) => told.push(begun),
                Err(No::Refused(refused @ (Refused::Unknown | Refused::Busy))) => {
                    return (told, Err(refused));
                }
                // Collections that the caller may not watch are left out.
                Err(_) => drop(self.again.insert(resource, Instant::now() + ADD_AGAIN)),
            }
        }
        (told, Ok(()))
    }

    /// Held collections that are not among the feeds and are not waiting for a retry.
    pub(super) fn addable(&self) -> Vec<Resource> {
        let is_addable = |collection: &Arc<Collection>| {
            let resource = &collection.own;
            let is_known = self.feeds.iter().any(|it| it.resource == *resource);
            let is_elsewhere = self.query.namespace.is_some() && !resource.namespaced;
            let is_strict = self.endpoint.inner.catalog.is_strict(resource);
            let is_usable = !collection.has_ended() && collection.informer.has_synced();
            let rests = self.again.get(resource).is_some_and(|at| Instant::now() < *at);
            is_usable && !is_known && !is_elsewhere && !is_strict && !rests
        };
        let held = self.endpoint.inner.collections.now().into_iter();
        held.filter(is_addable).map(|it| it.own.clone()).collect()
    }

    /// Reviews the credentials again before anything is added with the rights of their user.
    pub(super) async fn authenticate(&mut self) -> Result<(), Refused> {
        self.asker = self.asker.again().await?;
        self.authenticated = Instant::now();
        Ok(())
    }

    /// Adds the changes of a resource, if the caller may watch it.
    async fn add(&mut self, resource: Resource) -> Result<Told, No> {
        let inner = &*self.endpoint.inner;
        let held = inner.collections.namespace().filter(|_| resource.namespaced);
        let asked = self.query.namespace.as_deref();
        if let Some(asked) = asked.filter(|_| !resource.namespaced) {
            let message = format!(
                "{} do not live in namespaces; leave out namespace={asked}",
                resource.group_resource()
            );
            return Err(No::Refusal(Refusal::bad_request(message)));
        }
        if let (Some(held), Some(asked)) = (held, asked)
            && held != asked
        {
            let message = format!(
                "the gateway holds namespace {held} only and knows nothing of namespace {asked}"
            );
            return Err(No::Refusal(Refusal::forbidden(message)));
        }
        let namespace = self.namespace_of(&resource).map(str::to_owned);
        let attributes = self.query.attributes(&resource, namespace.as_deref());
        let permission = self.asker.may(attributes.clone()).await.map_err(No::Refused)?;
        if inner.catalog.is_strict(&resource) {
            let name = resource.group_resource();
            return Err(No::Refusal(Refusal::forbidden(format!(
                "{name} is never answered from the cache here (--strict)"
            ))));
        }
        let counted = match &permission {
            // The stream itself already counts as one watch.
            Some(_) if self.feeds.is_empty() => self.counted.clone(),
            Some(_) => Some(inner.per_user.open(&self.asker.caller().user).map_err(No::Refusal)?),
            None => None,
        };
        let acquired = inner.collections.acquire(&resource, || plain(&resource), false).await;
        let collection = match acquired.map_err(No::Refusal)? {
            Ok(collection) => collection,
            Err(unheld) => {
                return Err(No::Refusal(unheld.refusal(&resource, &inner.options)));
            }
        };
        if let Err(unready) = inner.collections.ready(&collection).await {
            return Err(No::Refusal(match unready {
                Unready::Refusal(refusal) => refusal,
                Unready::Listing => {
                    Refusal::unavailable(format!("{resource}: the first list is still coming in"))
                }
                Unready::Forward(unheld) => unheld.refusal(&resource, &inner.options),
            }));
        }
        collection.hit();
        let held = Held { reviewed: attributes, permission, counted };
        let (feed, told) = Feed::open(collection, namespace, &self.query, held).await?;
        self.feeds.push(feed);
        Ok(told)
    }
}
