/** The schema of retention windows, with their protobuf field numbers. */
import { type Field, field, StructType } from '../api/schema.ts'
import { metadataField } from './object-types.ts'

function count(name: string, number: number, doc: string): Field {
  return { name, number, type: 'int64', whenUnset: '0', doc }
}

const lifetimeType: StructType = new StructType('RetentionWindowLifetime', [
  field('rule', 1, 'string', 'Name of the rule; `default` for `--event-ttl`.'),
  field(
    'selects',
    2,
    'string',
    'The values that events must have; empty when it applies to all remaining events.',
  ),
  field(
    'lifetime',
    3,
    'string',
    'How long an event is retained after its last change, or `never` if it does not expire.',
  ),
])

const budgetType: StructType = new StructType('RetentionWindowBudget', [
  field('name', 1, 'string', 'Name of the budget.'),
  field('events', 2, 'int64', 'Maximum number of events.'),
  field('bytes', 3, 'int64', 'Maximum size of the events in bytes.'),
])

const historyType: StructType = new StructType('RetentionWindowHistory', [
  field(
    'oldestTime',
    1,
    'microTime',
    'The start of the oldest day in history, in UTC; unset when there is none. The same for the cluster and each of its namespaces.',
  ),
  field('position', 2, 'string', 'The resourceVersion up to which all changes are in history.'),
  field('positionTime', 3, 'microTime', 'When all changes up to it had been read.'),
  count('lagSeconds', 4, 'Seconds since then.'),
  field(
    'untilTime',
    5,
    'microTime',
    'Events that were last seen before it are read from history, later ones from memory; unset when memory has all.',
  ),
])

export const retentionWindowType: StructType = new StructType('RetentionWindow', [
  metadataField,
  field('cluster', 2, 'string', 'The cluster.'),
  count('events', 3, 'Number of stored events.'),
  count('bytes', 4, 'The size of their JSON.'),
  field('oldestTime', 5, 'microTime', 'When the oldest of these events was last seen.'),
  field(
    'lifetimes',
    6,
    { listOf: lifetimeType },
    'The rules that can apply, in order; the first that matches an event decides.',
  ),
  field('budget', 7, { struct: budgetType }, 'The budget; unset when there is none.'),
  field(
    'evicted',
    8,
    'int64',
    'Events that were deleted because of budgets; unset when they are not counted by name.',
  ),
  field('hiddenRules', 9, 'int64', 'How many more rules can apply; unset when all are shown.'),
  field(
    'refused',
    10,
    'int64',
    'Set for a cluster: number of writes that the responding replica has refused since its start, because of limits or because etcd was full or unavailable.',
  ),
  field(
    'history',
    11,
    { struct: historyType },
    'How far back history goes, and how far it is behind; unset without `--history`.',
  ),
])
