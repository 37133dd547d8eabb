/**
 * The events of a large, busy cluster, one after the other in the order of time: some 60 namespaces,
 * 40,000 objects, 60 reasons and 25 controllers; 15 in 100 are Warnings, 10 in 100 were seen more
 * than once. Event `n` is the same in every run: nothing but a number decides it.
 */
import { Random } from './random.ts'
import { type Happening, newStyle, oldStyle, type Subject } from './recorder-styles.ts'
import type { WireEvent } from './wire-event.ts'

export interface MadeCluster {
  /** How many events the time span has. */
  readonly count: number
  /** The last event was seen then. */
  readonly untilMs: number
  readonly spanMs: number
}

export const MADE_NAMESPACES = 60
export const MADE_OBJECTS = 40_000
const NODES = 500
const WARNINGS = 0.15
const SERIES = 0.1
const HOUR_MS = 3_600_000

type Template = readonly [kind: string, by: string, reason: string, note: string]
type Templates = readonly [Template, ...Template[]]

/** Event `n`, from 0 to `count` - 1. */
export function madeEvent(cluster: MadeCluster, n: number): WireEvent {
  const random = new Random(Math.imul(n + 1, 0x9e3779b1))
  const [kind, by, reason, note] = random.pick(random.chance(WARNINGS) ? WARNING : NORMAL)
  const type = WARNING_REASONS.has(reason) ? 'Warning' : 'Normal'
  const about = objectOf(kind, random)
  const lastMs = seenMs(cluster, (n + 1) / cluster.count)
  const node = `node-${String(random.below(NODES)).padStart(3, '0')}`
  const isSeries = random.chance(SERIES)
  const what: Happening = {
    about,
    type,
    reason,
    by,
    note: noteOf(note, { about, node, random }),
    ...(by === 'kubelet' ? { host: node } : {}),
    ...(by === 'kubelet' && kind === 'Pod' ? { fieldPath: 'spec.containers{app}' } : {}),
    firstMs: isSeries ? lastMs - Math.floor(random.between(60_000, 6 * HOUR_MS)) : lastMs,
    ...(isSeries ? { repeated: { lastMs, count: 2 + random.below(200) } } : {}),
  }
  const name = `${about.name}.${(0x17f3a6b2c4d5e + n).toString(16)}`
  return by === 'kubelet'
    ? oldStyle(what, name, true)
    : newStyle(what, name, { instance: `${by}-control-plane-${1 + random.below(3)}` })
}

/** Maps a share of the span to a time: more events happen by day than by night, and times never decrease. */
function seenMs({ untilMs, spanMs }: MadeCluster, share: number): number {
  const days = spanMs / (24 * HOUR_MS)
  const wave = (0.14 * Math.sin(2 * Math.PI * days * share)) / Math.max(1, days)
  return Math.floor(untilMs - spanMs * (1 - Math.min(1, share + wave)))
}

/** A few objects have far more events than the others. */
function objectOf(kind: string, random: Random): Subject {
  const share = SHARES[kind] ?? 0.02
  const number = Math.floor(MADE_OBJECTS * share * random.next() ** 3)
  const hex = (Math.imul(number + 1, 0x85ebca6b) >>> 0).toString(16).padStart(8, '0')
  const app = `${APPS[number % APPS.length]}-${number % 977}`
  const names: Readonly<Record<string, string>> = {
    Pod: `${app}-${hex}-${(number % 46_656).toString(36).padStart(3, '0')}`,
    ReplicaSet: `${app}-${hex}`,
    Node: `node-${String(number % NODES).padStart(3, '0')}`,
    Job: `${app}-${29_000_000 + number}`,
  }
  const hash = Math.imul(number ^ kind.length, 0x27d4eb2f) >>> 0
  return {
    kind,
    apiVersion: API_VERSIONS[kind] ?? 'v1',
    namespace: kind === 'Node' ? '' : namespaceOf(hash % MADE_NAMESPACES),
    name: names[kind] ?? app,
    uid: `${hex}-6f0b-4e0e-9d3c-${(hash * 4096 + number).toString(16).padStart(12, '0')}`,
  }
}

function namespaceOf(number: number): string {
  return number === 0 ? 'kube-system' : `${TEAMS[number % TEAMS.length]}-${number}`
}

function noteOf(
  template: string,
  { about, node, random }: { readonly about: Subject; readonly node: string; random: Random },
): string {
  const image = `registry.example/${about.name.split('-')[0]}/app:v1.${random.below(400)}.${random.below(20)}`
  return template
    .replace('OBJECT', `${about.namespace}/${about.name}`)
    .replace('NODE', node)
    .replace('IMAGE', image)
    .replace('NUMBER', String(random.below(10_000)))
}

const TEAMS = ['shop', 'billing', 'search', 'platform', 'media', 'data', 'identity'] as const
const APPS = ['checkout', 'cart', 'api', 'worker', 'indexer', 'gateway', 'mailer', 'web'] as const

/** The share of each kind in all objects; of the others two in a hundred. */
const SHARES: Readonly<Record<string, number>> = {
  Pod: 0.7,
  ReplicaSet: 0.1,
  Job: 0.08,
  Node: 0.0125,
}

const API_VERSIONS: Readonly<Record<string, string>> = {
  ReplicaSet: 'apps/v1',
  Deployment: 'apps/v1',
  StatefulSet: 'apps/v1',
  DaemonSet: 'apps/v1',
  Job: 'batch/v1',
  CronJob: 'batch/v1',
  HorizontalPodAutoscaler: 'autoscaling/v2',
  Ingress: 'networking.k8s.io/v1',
  Certificate: 'cert-manager.io/v1',
}

/** One in each line. */
function templatesIn(text: string): Templates {
  return text
    .trim()
    .split('\n')
    .map((line) => line.split(' | ')) as unknown as Templates
}

const NORMAL = templatesIn(`
Pod | default-scheduler | Scheduled | Successfully assigned OBJECT to NODE
Pod | default-scheduler | Preempted | Preempted by pod NUMBER of a higher priority on node NODE
Pod | kubelet | Pulling | Pulling image "IMAGE"
Pod | kubelet | Pulled | Successfully pulled image "IMAGE" in NUMBERms (NUMBERms including waiting). Image size: 48211034 bytes.
Pod | kubelet | Pulled | Container image "IMAGE" already present on machine and can be accessed by the pod
Pod | kubelet | Created | Created container: app from image IMAGE for OBJECT
Pod | kubelet | Started | Started container app of OBJECT with process NUMBER
Pod | kubelet | Killing | Stopping container app of OBJECT, grace period 30s
Pod | kubelet | SandboxChanged | Pod sandbox changed, it will be killed and re-created.
Pod | attachdetach-controller | SuccessfulAttachVolume | AttachVolume.Attach succeeded for volume "pvc-NUMBER"
Pod | taint-eviction-controller | TaintManagerEviction | Cancelling deletion of Pod OBJECT
Pod | descheduler | Descheduled | pod evicted from NODE by sigs.k8s.io/descheduler
ReplicaSet | replicaset-controller | SuccessfulCreate | Created pod: OBJECT-NUMBER
ReplicaSet | replicaset-controller | SuccessfulDelete | Deleted pod: OBJECT-NUMBER
Deployment | deployment-controller | ScalingReplicaSet | Scaled up replica set of OBJECT from 3 to NUMBER
Deployment | argocd-application-controller | OperationCompleted | Sync operation of OBJECT to revision NUMBER succeeded
StatefulSet | statefulset-controller | SuccessfulUpdate | update Pod OBJECT-NUMBER in StatefulSet successful
DaemonSet | daemonset-controller | DaemonPodCreated | Created pod: OBJECT-NUMBER on NODE
Job | job-controller | JobStarted | Created pod: OBJECT-NUMBER for the first attempt
Job | job-controller | Completed | Job completed after NUMBER milliseconds without failures
CronJob | cronjob-controller | SawCompletedJob | Saw completed job: OBJECT-NUMBER, condition: Complete
Node | kubelet | NodeReady | Node NODE status is now: NodeReady
Node | kubelet | NodeHasSufficientMemory | Node NODE status is now: NodeHasSufficientMemory
Node | kubelet | NodeHasNoDiskPressure | Node NODE status is now: NodeHasNoDiskPressure
Node | node-controller | RegisteredNode | Node NODE event: Registered Node NODE in Controller
Node | cluster-autoscaler | ScaleDown | node removed by cluster autoscaler, utilisation NUMBER per mille
ConfigMap | cluster-autoscaler | ScaledUpGroup | Scale-up: setting group size to NUMBER instead of 12 (max: 900)
HorizontalPodAutoscaler | horizontal-pod-autoscaler | SuccessfulRescale | New size: NUMBER; reason: cpu resource utilization (percentage of request) above target
PersistentVolumeClaim | persistentvolume-controller | ExternalProvisioning | Waiting for a volume to be created by the external provisioner "csi.example.com" for OBJECT
PersistentVolumeClaim | csi-provisioner | ProvisioningSucceeded | Successfully provisioned volume pvc-NUMBER for OBJECT
PersistentVolumeClaim | volume-resizer | VolumeResizeSuccessful | Resize volume pvc-NUMBER succeeded
Ingress | nginx-ingress-controller | Sync | Scheduled for sync: OBJECT with NUMBER backends
Service | service-controller | EnsuredLoadBalancer | Ensured load balancer for OBJECT with NUMBER targets
Certificate | cert-manager | Issuing | Renewing certificate as renewal was scheduled at NUMBER for OBJECT
Lease | kube-controller-manager | LeaderElection | NODE_NUMBER became leader of OBJECT
Deployment | keda-operator | KEDAScalersStarted | Scaler kafka is built for OBJECT with lag NUMBER
Deployment | vpa-updater | EvictedByVPA | Pod of OBJECT was evicted by VPA Updater to apply resource recommendation NUMBER
`)

const WARNING = templatesIn(`
Pod | kubelet | BackOff | Back-off restarting failed container app in pod OBJECT(NUMBER)
Pod | kubelet | BackOff | Back-off pulling image "IMAGE": ErrImagePull: not found
Pod | kubelet | Unhealthy | Readiness probe failed: Get "http://10.4.17.22:8080/healthz": context deadline exceeded (NUMBER ms)
Pod | kubelet | Unhealthy | Liveness probe failed: HTTP probe failed with statuscode: 503 after NUMBER ms
Pod | kubelet | Failed | Failed to pull image "IMAGE": rpc error: code = NotFound desc = failed to resolve reference
Pod | kubelet | FailedMount | MountVolume.SetUp failed for volume "data": timed out waiting for the condition of OBJECT
Pod | kubelet | FailedCreatePodSandBox | Failed to create pod sandbox: rpc error: code = Unknown desc = failed to set up network for sandbox NUMBER: no IP addresses available
Pod | kubelet | Evicted | The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: NUMBERKi.
Pod | kubelet | OOMKilling | Memory cgroup out of memory: Killed process NUMBER (java) of OBJECT, anon-rss: 2097152kB
Pod | default-scheduler | FailedScheduling | 0/500 nodes are available: 212 Insufficient cpu, 288 Insufficient memory. preemption: 0/500 nodes are available: NUMBER No preemption victims found.
Pod | attachdetach-controller | FailedAttachVolume | Multi-Attach error for volume "pvc-NUMBER" Volume is already used by pod(s) OBJECT
ReplicaSet | replicaset-controller | FailedCreate | Error creating: pods "OBJECT-NUMBER" is forbidden: exceeded quota: compute, requested: limits.cpu=2
Deployment | deployment-controller | ProgressDeadlineExceeded | ReplicaSet of OBJECT has timed out progressing after NUMBER seconds
Job | job-controller | BackoffLimitExceeded | Job OBJECT has reached the specified backoff limit after NUMBER seconds
CronJob | cronjob-controller | MissSchedule | Missed scheduled time to start a job: OBJECT, NUMBER seconds late
Node | kubelet | EvictionThresholdMet | Attempting to reclaim ephemeral-storage on NODE, NUMBER MiB missing
Node | kubelet | Rebooted | Node NODE has been rebooted, boot id: NUMBER-6f0b-4e0e
Node | kubelet | NodeHasDiskPressure | Node NODE status is now: NodeHasDiskPressure
Node | node-problem-detector | KernelOops | BUG: unable to handle kernel NULL pointer dereference at NUMBER on NODE
HorizontalPodAutoscaler | horizontal-pod-autoscaler | FailedGetResourceMetric | failed to get cpu utilization: unable to get metrics for resource cpu of OBJECT: no metrics returned
PersistentVolumeClaim | csi-provisioner | ProvisioningFailed | failed to provision volume for OBJECT: rpc error: code = ResourceExhausted desc = quota NUMBER
Ingress | nginx-ingress-controller | Rejected | host of OBJECT is already defined in ingress NUMBER
Service | service-controller | SyncLoadBalancerFailed | Error syncing load balancer of OBJECT: timed out after NUMBER ms
Certificate | cert-manager | OrderFailed | Failed to wait for order resource of OBJECT to become ready: order is in "errored" state, code NUMBER
`)

const WARNING_REASONS: ReadonlySet<string> = new Set(WARNING.map(([, , reason]) => reason))
