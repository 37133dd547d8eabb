/** What happened in a small cluster before somebody was called: a bad image, a full node. */
import type { PageEvent } from './page-server.ts'

const checkout = 'Pod/checkout-5d8f7c9b4-x2lqz'

export const NIGHT: readonly PageEvent[] = [
  ...Array.from(
    { length: 24 },
    (_, index): PageEvent => ({
      minutesAgo: 3 + index * 2.3,
      reason: index % 3 === 0 ? 'Pulled' : 'Created',
      object: `Pod/cart-${index % 5}`,
      note: `Container image "shop/cart:1.${index}" already present on machine`,
    }),
  ),
  {
    minutesAgo: 26,
    reason: 'ScalingReplicaSet',
    object: 'Deployment/checkout',
    note: 'Scaled up replica set checkout-5d8f7c9b4 to 3',
    controller: 'deployment-controller',
  },
  {
    minutesAgo: 25.9,
    reason: 'Scheduled',
    object: checkout,
    note: 'Successfully assigned shop/checkout-5d8f7c9b4-x2lqz to node-3',
    controller: 'default-scheduler',
  },
  {
    minutesAgo: 4,
    type: 'Warning',
    reason: 'BackOff',
    object: checkout,
    note: 'Back-off restarting failed container checkout in pod checkout-5d8f7c9b4-x2lqz_shop',
    count: 42,
    overMinutes: 18,
    members: {
      metadata: {
        generateName: 'checkout-',
        namespace: 'shop',
        labels: { app: 'checkout', tier: 'front' },
      },
      source: { component: 'kubelet', host: 'node-3' },
    },
  },
  {
    minutesAgo: 1.5,
    type: 'Warning',
    reason: 'Unhealthy',
    object: checkout,
    note: 'Liveness probe failed: Get "http://10.0.3.17:8080/healthz": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
    count: 12,
    overMinutes: 11,
  },
  {
    minutesAgo: 14,
    type: 'Warning',
    reason: 'FailedScheduling',
    object: 'Pod/report-28911-k4m2v',
    note: '0/4 nodes are available: 1 node(s) had untolerated taint {disk: full}, 3 Insufficient memory.',
    namespace: 'batch',
    controller: 'default-scheduler',
    count: 7,
    overMinutes: 9,
  },
  {
    minutesAgo: 33,
    type: 'Warning',
    reason: 'NodeHasDiskPressure',
    object: 'Node/node-2',
    note: 'Node node-2 status is now: NodeHasDiskPressure',
    namespace: 'default',
    members: { involvedObject: { kind: 'Node', name: 'node-2' } },
  },
]
