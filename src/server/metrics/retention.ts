import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import type { TotalKind } from '../../retention/account/totals.ts'
import type { RetentionPolicy } from '../../retention/policy.ts'
import type { Retention, RetentionStatus } from '../../retention/retention.ts'
import { type Figure, registerFigure } from './figure.ts'

const RETENTION: readonly Figure<RetentionStatus>[] = [
  {
    name: 'tidings_sweeper_role',
    help: '1 on the replica that sweeps and compacts, 0 on the others. While etcd is full, several may sweep.',
    read: (status) => (status.isLeader || status.isWorkingWithoutLeader ? 1 : 0),
  },
  {
    name: 'tidings_sweep_lag_seconds',
    help: 'How long the most overdue event has been expired; only on replicas that sweep.',
    read: ({ sweepLagMs }) => (sweepLagMs === undefined ? undefined : sweepLagMs / 1000),
  },
  {
    name: 'tidings_compactions_total',
    help: "How often this replica has compacted etcd's history.",
    isCounter: true,
    read: (status) => status.compactionCount,
  },
  {
    name: 'tidings_clock_skew_seconds',
    help: "How far this replica's wall clock is ahead of the sweeper's.",
    read: ({ clockSkewMs }) => (clockSkewMs === undefined ? undefined : clockSkewMs / 1000),
  },
  {
    name: 'tidings_sweep_unproved_seconds',
    help: 'How much longer than their TTL events may be kept, since only a wall clock says that they have expired.',
    read: (status) => status.unprovedMs / 1000,
  },
]

/** Events that this replica has deleted, and why. The account bounds the number of names. */
const DELETED: readonly {
  readonly name: string
  readonly help: string
  readonly label: string
  readonly kind: TotalKind
}[] = [
  {
    name: 'tidings_swept_events_total',
    help: 'Expired events that this replica has deleted, by rule of the retention policy; default: --event-ttl.',
    label: 'rule',
    kind: 'expired',
  },
  {
    name: 'tidings_evicted_events_total',
    help: 'Events that this replica has deleted because a namespace or cluster had more than its budget, by budget of the retention policy.',
    label: 'budget',
    kind: 'evicted',
  },
]

export function registerRetentionMetrics(retention: Retention, registry: Registry): void {
  for (const figure of RETENTION) {
    registerFigure(figure, () => figure.read(retention.status), registry, {})
  }
  for (const { name, help, label, kind } of DELETED) {
    new Counter({
      name,
      help,
      labelNames: [label],
      registers: [registry],
      collect() {
        this.reset()
        for (const [value, count] of countsOf(kind, retention)) {
          this.inc({ [label]: value }, count)
        }
      },
    })
  }
  new Gauge({
    name: 'tidings_retention_policy_info',
    help: '1, with the fingerprint of the retention policy in use: equal policies have the same one, so all replicas should.',
    labelNames: ['fingerprint'],
    registers: [registry],
    collect() {
      this.reset()
      this.set({ fingerprint: retention.policy.fingerprint }, 1)
    },
  })
}

/** Rules and budgets in use have series from the start, so that `increase` sees the first deletion. */
function countsOf(kind: TotalKind, { policy, status }: Retention): ReadonlyMap<string, number> {
  const unused = namesIn(kind, policy).map((name) => [name, 0] as const)
  return new Map([...unused, ...status.deleted.of(kind)])
}

function namesIn(kind: TotalKind, { rules, budgets }: RetentionPolicy): readonly string[] {
  return (kind === 'expired' ? rules : budgets).map(({ name }) => name)
}
