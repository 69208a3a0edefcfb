//! A running Pod of an application with a sidecar, as the API server writes one.

pub(super) struct Facts {
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) app: String,
    pub(super) namespace: String,
    pub(super) replica_set: String,
    pub(super) node: String,
    pub(super) uid: String,
    pub(super) owner_uid: String,
    pub(super) ip: String,
    pub(super) digest: String,
}

pub(super) fn write(facts: &Facts) -> String {
    let mut json = String::with_capacity(8500);
    json.push_str("{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":");
    json.push_str(&metadata(facts));
    json.push_str(",\"spec\":");
    json.push_str(&spec(facts));
    json.push_str(",\"status\":");
    json.push_str(&status(facts));
    json.push('}');
    json
}

fn metadata(facts: &Facts) -> String {
    let Facts { number, name, app, namespace, replica_set, uid, owner_uid, .. } = facts;
    let hash = replica_set.rsplit('-').next().unwrap_or_default();
    let version = number + 1;
    let minute = number % 60;
    let managed = MANAGED_FIELDS.replace("OWNER", owner_uid).replace("MM", &format!("{minute:02}"));
    format!(
        r#"{{"name":"{name}","generateName":"{replica_set}-","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{version}","generation":1,"creationTimestamp":"2026-11-02T08:{minute:02}:07Z","labels":{{"app":"{app}","pod-template-hash":"{hash}","tier":"{tier}","version":"v{release}"}},"annotations":{{"checksum/config":"{checksum}","prometheus.io/port":"9102","prometheus.io/scrape":"true"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{replica_set}","uid":"{owner_uid}","controller":true,"blockOwnerDeletion":true}}],"managedFields":{managed}}}"#,
        tier = ["frontend", "backend", "batch"][number % 3],
        release = number % 7,
        checksum = &facts.digest[..32],
    )
}

fn spec(facts: &Facts) -> String {
    let Facts { app, namespace, node, .. } = facts;
    format!(
        r#"{{"volumes":[{{"name":"config","configMap":{{"name":"{app}-config","defaultMode":420}}}},{{"name":"cache","emptyDir":{{"sizeLimit":"512Mi"}}}},{{"name":"kube-api-access","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}}],"defaultMode":420}}}}],"containers":[{{"name":"main","image":"registry.example.com/{namespace}/{app}:1.4.2","args":["--listen=:8080","--log-level=info"],"ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}}],"env":[{{"name":"POD_NAME","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.name"}}}}}},{{"name":"DATABASE_URL","value":"postgres://{app}-db.{namespace}.svc:5432/{app}"}},{{"name":"CACHE_TTL","value":"300"}},{{"name":"API_KEY","valueFrom":{{"secretKeyRef":{{"name":"{app}-keys","key":"api"}}}}}}],"resources":{{"limits":{{"cpu":"1","memory":"1Gi"}},"requests":{{"cpu":"250m","memory":"512Mi"}}}},"volumeMounts":[{{"name":"config","readOnly":true,"mountPath":"/etc/{app}"}},{{"name":"cache","mountPath":"/var/cache"}},{{"name":"kube-api-access","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],"livenessProbe":{{"httpGet":{{"path":"/livez","port":8080,"scheme":"HTTP"}},"initialDelaySeconds":10,"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}},"readinessProbe":{{"httpGet":{{"path":"/readyz","port":8080,"scheme":"HTTP"}},"timeoutSeconds":1,"periodSeconds":5,"successThreshold":1,"failureThreshold":3}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{{"runAsNonRoot":true,"allowPrivilegeEscalation":false}}}},{{"name":"metrics","image":"registry.example.com/base/metrics:0.9","ports":[{{"name":"metrics","containerPort":9102,"protocol":"TCP"}}],"env":[{{"name":"TARGET","value":"http://127.0.0.1:8080/metrics"}}],"resources":{{"limits":{{"memory":"64Mi"}},"requests":{{"cpu":"10m","memory":"32Mi"}}}},"volumeMounts":[{{"name":"kube-api-access","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"{app}","serviceAccount":"{app}","nodeName":"{node}","securityContext":{{}},"schedulerName":"default-scheduler","tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"}}"#
    )
}

fn status(facts: &Facts) -> String {
    let Facts { number, app, namespace, ip, digest, .. } = facts;
    let minute = number % 60;
    let condition = |kind: &str, second: u32| {
        format!(
            r#"{{"type":"{kind}","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-02T08:{minute:02}:{second:02}Z"}}"#
        )
    };
    let conditions = [
        condition("PodReadyToStartContainers", 12),
        condition("Initialized", 8),
        condition("Ready", 24),
        condition("ContainersReady", 24),
        condition("PodScheduled", 8),
    ]
    .join(",");
    let container = |name: &str, image: &str, id: &str| {
        format!(
            r#"{{"name":"{name}","state":{{"running":{{"startedAt":"2026-11-02T08:{minute:02}:14Z"}}}},"lastState":{{}},"ready":true,"restartCount":0,"image":"{image}","imageID":"{image}@sha256:{digest}","containerID":"containerd://{id}","started":true}}"#
        )
    };
    let reversed: String = digest.chars().rev().collect();
    let containers = [
        container("main", &format!("registry.example.com/{namespace}/{app}:1.4.2"), &reversed),
        container("metrics", "registry.example.com/base/metrics:0.9", digest),
    ]
    .join(",");
    format!(
        r#"{{"phase":"Running","conditions":[{conditions}],"hostIP":"192.168.{high}.{low}","hostIPs":[{{"ip":"192.168.{high}.{low}"}}],"podIP":"{ip}","podIPs":[{{"ip":"{ip}"}}],"startTime":"2026-11-02T08:{minute:02}:08Z","containerStatuses":[{containers}],"qosClass":"Burstable"}}"#,
        high = number >> 8 & 255,
        low = number & 255,
    )
}

/// Who set which field: the controller manager all but the status, the kubelet the status.
const MANAGED_FIELDS: &str = r#"[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-11-02T08:MM:07Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{},"f:tier":{},"f:version":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"OWNER\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"API_KEY\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:secretKeyRef":{}}},"k:{\"name\":\"CACHE_TTL\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"DATABASE_URL\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"POD_NAME\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:fieldRef":{}}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:initialDelaySeconds":{},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:readinessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:securityContext":{".":{},"f:allowPrivilegeEscalation":{},"f:runAsNonRoot":{}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/var/cache\"}":{".":{},"f:mountPath":{},"f:name":{}}}},"k:{\"name\":\"metrics\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"TARGET\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":9102,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:nodeName":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:serviceAccount":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{},"f:volumes":{".":{},"k:{\"name\":\"cache\"}":{".":{},"f:emptyDir":{".":{},"f:sizeLimit":{}},"f:name":{}},"k:{\"name\":\"config\"}":{".":{},"f:configMap":{".":{},"f:defaultMode":{},"f:name":{}},"f:name":{}}}}}},{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-11-02T08:MM:24Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"PodReadyToStartContainers\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"10.0.0.1\"}":{".":{},"f:ip":{}}},"f:startTime":{}}},"subresource":"status"}]"#;
