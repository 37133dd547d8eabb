import type { EventKey } from '../../src/storage/storage.ts'

const namespaces = 500
/** The number of events of each object. */
export const eventsPerObject = 10
const reasons = ['Pulled', 'Created', 'Started', 'Scheduled', 'Killing', 'BackOff', 'Unhealthy']
const controllers = ['kubelet', 'default-scheduler', 'replicaset-controller', 'job-controller']
/** A reason that is as rare as the events of one object. */
export const rareReason = 'NodeHasDiskPressure'

const weekMs = 7 * 24 * 3_600_000
const beganMs = Date.parse('2026-01-01T00:00:00Z')

/** When event `n` was last seen: a million events are spread over a week. */
export function lastMs(n: number): number {
  return beganMs + Math.floor((n * weekMs) / 1_000_000)
}

/** The object that event `n` is about. */
export function objectOf(n: number): {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
} {
  const object = Math.floor(n / eventsPerObject)
  const digits = (object * 2654435761) % 2 ** 32
  const hex = digits.toString(16).padStart(8, '0')
  return {
    kind: 'Pod',
    namespace: `team-${object % namespaces}-production`,
    name: `payment-gateway-${hex}-${(object % 46656).toString(36).padStart(3, '0')}`,
    uid: `${hex}-6f0b-4e0e-9d3c-${object.toString(16).padStart(12, '0')}`,
  }
}

/** A typical event of a cluster, about 900 bytes. */
export function benchEvent(n: number): { readonly key: EventKey; readonly body: Buffer } {
  const object = objectOf(n)
  const { kind, namespace } = object
  const name = `${object.name}.${(0x17f3a6b2c4d5 + n).toString(16)}`
  const seen = new Date(lastMs(n)).toISOString()
  const isRare = n % 100 === 0 && n < eventsPerObject * 100
  const body = JSON.stringify({
    metadata: {
      name,
      namespace,
      uid: `${object.uid.slice(0, 24)}${n.toString(16).padStart(12, '0')}`,
      creationTimestamp: `${seen.slice(0, 19)}Z`,
    },
    eventTime: seen.replace('Z', '000Z'),
    reportingController: controllers[n % controllers.length],
    reportingInstance: `node-${n % 5000}.eu-central-1.compute.internal`,
    action: 'Pulling',
    reason: isRare ? rareReason : reasons[n % reasons.length],
    regarding: {
      kind,
      namespace,
      name: object.name,
      uid: object.uid,
      apiVersion: 'v1',
      resourceVersion: String(1_000_000 + n),
      fieldPath: 'spec.containers{payment-gateway}',
    },
    note: `Successfully pulled image "registry.example.internal/payments/gateway:v1.${n % 977}.3" in 1.${n % 1000}s`,
    type: n % 20 === 0 ? 'Warning' : 'Normal',
    deprecatedSource: { component: 'kubelet', host: `node-${n % 5000}.eu-central-1` },
    deprecatedLastTimestamp: `${seen.slice(0, 19)}Z`,
    deprecatedCount: 1,
  })
  return { key: { cluster: 'local', namespace, name }, body: Buffer.from(body) }
}
