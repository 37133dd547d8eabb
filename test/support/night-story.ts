/**
 * The events of one night in a small shop: hours of routine, then a node fails, its pods find no
 * room, and one of them does not come back. The same in every run, but for the time.
 */

import type { PageEvent } from './page-server.ts'
import { Random } from './random.ts'

/** `POD` stands for the name of the pod, `NODE` for that of its node. */
type Routine = readonly [reason: string, kind: string, controller: string, note: string]

const ROUTINES: readonly [Routine, ...Routine[]] = [
  ['Scheduled', 'Pod', 'default-scheduler', 'Successfully assigned POD to NODE'],
  ['Pulled', 'Pod', 'kubelet', 'Container image "shop/web:2.14" already present on machine'],
  ['Created', 'Pod', 'kubelet', 'Created container: web'],
  ['Started', 'Pod', 'kubelet', 'Started container web'],
  ['Killing', 'Pod', 'kubelet', 'Stopping container web'],
  ['SuccessfulCreate', 'ReplicaSet', 'replicaset-controller', 'Created pod: POD'],
  ['ScalingReplicaSet', 'Deployment', 'deployment-controller', 'Scaled up replica set to 4 from 3'],
  ['Completed', 'Job', 'job-controller', 'Job completed'],
  [
    'SawCompletedJob',
    'CronJob',
    'cronjob-controller',
    'Saw completed job: report, condition: Complete',
  ],
  ['LeaderElection', 'Lease', 'cert-manager', 'cert-manager-0 became leader'],
]
const NAMESPACES = ['shop', 'shop', 'shop', 'payments', 'batch', 'kube-system'] as const
const APPS = ['web', 'cart', 'search', 'checkout', 'mailer'] as const

/** Those in generated names. */
const DIGITS = ['2', '4', '5', '6', '7', '8', '9'] as const

const ROUTINE_EVENTS = 260
const STORY_MINUTES = 6 * 60

export function nightStory(): readonly PageEvent[] {
  const random = new Random(7)
  const routine = Array.from({ length: ROUTINE_EVENTS }, () => routineEvent(random))
  return [...routine, ...troubles(random), ...INCIDENT]
}

function routineEvent(random: Random): PageEvent {
  const [reason, kind, controller, note] = random.pick(ROUTINES)
  const app = random.pick(APPS)
  const pod = podOf(app, random)
  const node = `node-${1 + random.below(5)}`
  return {
    minutesAgo: random.between(1, STORY_MINUTES),
    reason,
    controller,
    namespace: random.pick(NAMESPACES),
    object: `${kind}/${nameOf(kind, app, pod)}`,
    note: note.replace('POD', pod).replace('NODE', node),
  }
}

function nameOf(kind: string, app: string, pod: string): string {
  if (kind === 'Pod') return pod
  return kind === 'ReplicaSet' ? pod.slice(0, pod.lastIndexOf('-')) : app
}

/** Some pods of one ReplicaSet, with names as Kubernetes generates them. */
function podOf(app: string, random: Random): string {
  return `${app}-7d9f84c6b5-x${random.pick(DIGITS)}k${random.pick(DIGITS)}q`
}

/** Warnings that every night has. */
function troubles(random: Random): readonly PageEvent[] {
  return Array.from({ length: 14 }, () => ({
    minutesAgo: random.between(30, STORY_MINUTES),
    type: 'Warning',
    reason: 'Unhealthy',
    object: `Pod/${podOf(random.pick(APPS), random)}`,
    note: 'Readiness probe failed: HTTP probe failed with statuscode: 503',
    count: 1 + random.below(4),
    overMinutes: 1,
  }))
}

const INCIDENT: readonly PageEvent[] = [
  {
    minutesAgo: 26,
    type: 'Warning',
    reason: 'NodeNotReady',
    object: 'Node/node-4',
    namespace: 'default',
    controller: 'node-controller',
    note: 'Node node-4 status is now: NodeNotReady',
  },
  ...(['web', 'cart', 'search'] as const).flatMap((app, index): readonly PageEvent[] => [
    {
      minutesAgo: 24 - index,
      type: 'Warning',
      reason: 'Unhealthy',
      object: `Pod/${app}-7d9f84c6b5-x2k4q`,
      count: 9 + 4 * index,
      overMinutes: 6,
      note: 'Readiness probe failed: Get "http://10.0.4.17:8080/ready": dial tcp: connect: connection refused',
    },
    {
      minutesAgo: 20 - index,
      reason: 'TaintManagerEviction',
      object: `Pod/${app}-7d9f84c6b5-x2k4q`,
      controller: 'taint-eviction-controller',
      note: `Marking for deletion Pod shop/${app}-7d9f84c6b5-x2k4q`,
    },
    {
      minutesAgo: 5 - index,
      type: 'Warning',
      reason: 'FailedScheduling',
      object: `Pod/${app}-7d9f84c6b5-k5n7z`,
      controller: 'default-scheduler',
      count: 22 - 3 * index,
      overMinutes: 13,
      note: '0/5 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, 4 Insufficient memory. preemption: 0/5 nodes are available',
    },
  ]),
  {
    minutesAgo: 2,
    reason: 'Scheduled',
    object: 'Pod/cart-7d9f84c6b5-k5n7z',
    controller: 'default-scheduler',
    note: 'Successfully assigned shop/cart-7d9f84c6b5-k5n7z to node-6',
  },
  {
    minutesAgo: 0.7,
    type: 'Warning',
    reason: 'FailedAttachVolume',
    object: 'Pod/cart-7d9f84c6b5-k5n7z',
    controller: 'attachdetach-controller',
    note: 'Multi-Attach error for volume "cart-data": Volume is already exclusively attached to node node-4 and cannot be attached to another',
  },
]
