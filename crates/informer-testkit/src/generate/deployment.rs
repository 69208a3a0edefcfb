//! A Deployment that has rolled out.

pub(super) fn write(
    number: usize,
    app: &str,
    namespace: &str,
    replicas: usize,
    uid: &str,
) -> String {
    let version = number + 1;
    let minute = number % 60;
    format!(
        r#"{{"kind":"Deployment","apiVersion":"apps/v1","metadata":{{"name":"{app}","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{version}","generation":1,"creationTimestamp":"2026-11-02T08:{minute:02}:05Z","labels":{{"app":"{app}","app.kubernetes.io/part-of":"shop","tier":"{tier}"}},"annotations":{{"deployment.kubernetes.io/revision":"1"}},"managedFields":[{{"manager":"kubectl","operation":"Update","apiVersion":"apps/v1","time":"2026-11-02T08:{minute:02}:05Z","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:labels":{{".":{{}},"f:app":{{}},"f:tier":{{}}}}}},"f:spec":{{"f:replicas":{{}},"f:selector":{{}},"f:strategy":{{}},"f:template":{{}}}}}}}},{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"apps/v1","time":"2026-11-02T08:{minute:02}:30Z","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{"f:availableReplicas":{{}},"f:conditions":{{}},"f:observedGeneration":{{}},"f:readyReplicas":{{}},"f:replicas":{{}},"f:updatedReplicas":{{}}}}}},"subresource":"status"}}]}},"spec":{{"replicas":{replicas},"selector":{{"matchLabels":{{"app":"{app}"}}}},"template":{{"metadata":{{"labels":{{"app":"{app}","app.kubernetes.io/part-of":"shop"}}}},"spec":{{"containers":[{{"name":"main","image":"registry.example.com/{namespace}/{app}:1.4.2","ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}}],"resources":{{"requests":{{"cpu":"250m","memory":"512Mi"}}}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{{}},"schedulerName":"default-scheduler"}}}},"strategy":{{"type":"RollingUpdate","rollingUpdate":{{"maxUnavailable":"25%","maxSurge":"25%"}}}},"revisionHistoryLimit":10,"progressDeadlineSeconds":600}},"status":{{"observedGeneration":1,"replicas":{replicas},"updatedReplicas":{replicas},"readyReplicas":{replicas},"availableReplicas":{replicas},"conditions":[{{"type":"Available","status":"True","lastUpdateTime":"2026-11-02T08:{minute:02}:30Z","lastTransitionTime":"2026-11-02T08:{minute:02}:30Z","reason":"MinimumReplicasAvailable","message":"Deployment has minimum availability."}}]}}}}"#,
        tier = ["frontend", "backend", "batch"][number % 3],
    )
}
