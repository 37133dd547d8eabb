import type { Registry } from '@prometheus-io/client'
import type { Retention, RetentionStatus } from '../../retention/retention.ts'
import { type Figure, registerFigure } from './figure.ts'

const RETENTION: readonly Figure<RetentionStatus>[] = [
  {
    name: 'tidings_sweeper_role',
    help: '1 on the replica that sweeps and compacts, 0 on the others. While etcd is full, several may sweep.',
    read: (status) => (status.isLeader || status.isWorkingWithoutLeader ? 1 : 0),
  },
  {
    name: 'tidings_swept_events_total',
    help: 'Expired events that this replica has deleted.',
    isCounter: true,
    read: (status) => status.sweptCount,
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

export function watchRetention(retention: Retention, registry: Registry): void {
  for (const figure of RETENTION) {
    registerFigure(figure, () => figure.read(retention.status), registry, {})
  }
}
