//! Services and how they are reached.

use std::collections::BTreeSet;

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::keep::{Keep, keep};
use super::selector::{label_selector, labels, or_none};
use super::text::{first_three, lower, resource_name};
use super::view::View;

pub(super) static KINDS: [BuiltIn; 8] = [
    BuiltIn::new("", "Service", &definitions::SERVICE, service),
    BuiltIn::new("", "Endpoints", &definitions::ENDPOINTS, endpoints),
    BuiltIn::new("discovery.k8s.io", "EndpointSlice", &definitions::ENDPOINT_SLICE, slice)
        .keeping(&SLICE_FIELDS),
    BuiltIn::new("networking.k8s.io", "Ingress", &definitions::INGRESS, ingress),
    BuiltIn::new("networking.k8s.io", "IngressClass", &definitions::INGRESS_CLASS, ingress_class),
    BuiltIn::new("networking.k8s.io", "IPAddress", &definitions::IP_ADDRESS, ip_address),
    BuiltIn::new("networking.k8s.io", "NetworkPolicy", &definitions::NETWORK_POLICY, |it| {
        let pods = it.at("spec").and_then(|it| it.at("podSelector"));
        cells![it.name(), label_selector(pods), it.age()]
    }),
    BuiltIn::new("networking.k8s.io", "ServiceCIDR", &definitions::SERVICE_CIDR, |it| {
        cells![it.name(), it.texts("spec.cidrs").collect::<Vec<_>>().join(","), it.age()]
    }),
];

static SLICE_FIELDS: Keep = keep! {
    metadata { name namespace creationTimestamp }
    addressType ports
    endpoints { addresses }
};

fn service(it: View<'_>) -> Vec<Value> {
    let address = it.texts("spec.clusterIPs").next().unwrap_or_else(|| it.text("spec.clusterIP"));
    let has_address = it.count("spec.clusterIPs") > 0 || !address.is_empty();
    cells![
        it.name(),
        it.text_or("spec.type", "ClusterIP"),
        if has_address { address } else { "<none>" },
        external_addresses(it),
        service_ports(it),
        it.age(),
        labels(it.map("spec.selector")),
    ]
}

/// The addresses by which a Service is reached from outside.
fn external_addresses(it: View<'_>) -> String {
    let kind = it.text_or("spec.type", "ClusterIP");
    let balancers = match kind {
        "ExternalName" => return it.text("spec.externalName").to_owned(),
        "ClusterIP" | "NodePort" => String::new(),
        "LoadBalancer" => load_balancers(it),
        _ => return "<unknown>".to_owned(),
    };
    let balancers = (!balancers.is_empty()).then_some(balancers.as_str());
    let addresses: Vec<&str> = balancers.into_iter().chain(it.texts("spec.externalIPs")).collect();
    match (addresses.as_slice(), kind) {
        ([], "LoadBalancer") => "<pending>".to_owned(),
        ([], _) => "<none>".to_owned(),
        (addresses, _) => addresses.join(","),
    }
}

/// The addresses of load balancers, in order.
fn load_balancers(it: View<'_>) -> String {
    let addresses: BTreeSet<&str> = it
        .list("status.loadBalancer.ingress")
        .map(|it| match it.text("ip") {
            "" => it.text("hostname"),
            address => address,
        })
        .filter(|it| !it.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

fn service_ports(it: View<'_>) -> String {
    let port = |it: View<'_>| {
        let (port, protocol) = (it.integer("port"), it.text_or("protocol", "TCP"));
        match it.integer("nodePort") {
            node_port @ 1.. => format!("{port}:{node_port}/{protocol}"),
            _ => format!("{port}/{protocol}"),
        }
    };
    or_none(it.list("spec.ports").map(port).collect::<Vec<_>>().join(","))
}

fn endpoints(it: View<'_>) -> Vec<Value> {
    let addresses = it.list("subsets").flat_map(|subset| {
        // Headless Services may have no ports.
        let ports: Vec<Option<i64>> = match subset.count("ports") {
            0 => vec![None],
            _ => subset.list("ports").map(|it| Some(it.integer("port"))).collect(),
        };
        ports.into_iter().flat_map(move |port| {
            subset.list("addresses").map(move |it| match (it.text("ip"), port) {
                (address, None) => address.to_owned(),
                (address, Some(port)) if address.contains([':', '%']) => {
                    format!("[{address}]:{port}")
                }
                (address, Some(port)) => format!("{address}:{port}"),
            })
        })
    });
    let addresses = match it.count("subsets") {
        0 => "<none>".to_owned(),
        _ => first_three(addresses),
    };
    cells![it.name(), addresses, it.age()]
}

fn slice(it: View<'_>) -> Vec<Value> {
    let ports = it.list("ports").map(|it| match it.written("port") {
        Some(port) => port,
        None => it.present_or("name", "*").to_owned(),
    });
    let addresses = it.list("endpoints").flat_map(|it| it.texts("addresses"));
    cells![
        it.name(),
        it.text("addressType"),
        or_unset(first_three(ports)),
        or_unset(first_three(addresses)),
        it.age(),
    ]
}

fn or_unset(text: String) -> String {
    if text.is_empty() { "<unset>".to_owned() } else { text }
}

fn ingress(it: View<'_>) -> Vec<Value> {
    cells![
        it.name(),
        it.present_or("spec.ingressClassName", "<none>"),
        hosts(it),
        load_balancers(it),
        if it.count("spec.tls") > 0 { "80, 443" } else { "80" },
        it.age(),
    ]
}

/// The hosts of the rules, up to three, and how many rules there are beyond that.
fn hosts(it: View<'_>) -> String {
    let (mut hosts, mut has_more) = (Vec::new(), false);
    for rule in it.list("spec.rules") {
        has_more |= hosts.len() == 3;
        match rule.text("host") {
            "" => {}
            host if !has_more => hosts.push(host),
            _ => {}
        }
    }
    match (hosts.join(","), has_more) {
        (_, false) if hosts.is_empty() => "*".to_owned(),
        (hosts, false) => hosts,
        (hosts, true) => format!("{hosts} + {} more...", it.count("spec.rules") - 3),
    }
}

fn ingress_class(it: View<'_>) -> Vec<Value> {
    let is_default = it.annotation("ingressclass.kubernetes.io/is-default-class") == Some("true");
    let parameters = match it.at("spec.parameters") {
        Some(it) => {
            let group = it.written("apiGroup").map(|it| format!(".{it}")).unwrap_or_default();
            format!("{}{group}/{}", it.text("kind"), it.text("name"))
        }
        None => "<none>".to_owned(),
    };
    cells![
        format!("{}{}", it.name(), if is_default { " (default)" } else { "" }),
        it.text("spec.controller"),
        parameters,
        it.age(),
    ]
}

fn ip_address(it: View<'_>) -> Vec<Value> {
    let parent = match it.at("spec.parentRef") {
        Some(parent) => {
            let resource = resource_name(parent.text("resource"), parent.text("group"));
            let namespace = match parent.text("namespace") {
                "" => String::new(),
                namespace => format!("/{namespace}"),
            };
            format!("{}{namespace}/{}", lower(&resource), parent.text("name"))
        }
        None => "<none>".to_owned(),
    };
    // One more than there are columns, as kube-apiserver has it.
    cells![it.name(), parent, it.age()]
}
