/** The schema of retention windows, with their protobuf field numbers. */
import { type Field, StructType } from '../api/schema.ts'
import { metadataField } from './object-types.ts'

function count(name: string, number: number, doc: string): Field {
  return { name, number, type: 'int64', whenUnset: '0', doc }
}

const lifetimeType: StructType = new StructType('RetentionWindowLifetime', [
  {
    name: 'rule',
    number: 1,
    type: 'string',
    doc: 'Name of the rule; `default` for `--event-ttl`.',
  },
  {
    name: 'selects',
    number: 2,
    type: 'string',
    doc: 'The values that events must have; empty when it applies to all that are left.',
  },
  {
    name: 'lifetime',
    number: 3,
    type: 'string',
    doc: 'How long an event is kept after its last change, or `never` when it does not expire.',
  },
])

const budgetType: StructType = new StructType('RetentionWindowBudget', [
  { name: 'name', number: 1, type: 'string', doc: 'Name of the budget.' },
  { name: 'events', number: 2, type: 'int64', doc: 'The most events that are kept.' },
  { name: 'bytes', number: 3, type: 'int64', doc: 'The most bytes that are kept.' },
])

export const retentionWindowType: StructType = new StructType('RetentionWindow', [
  metadataField,
  { name: 'cluster', number: 2, type: 'string', doc: 'The cluster.' },
  count('events', 3, 'Number of stored events.'),
  count('bytes', 4, 'The size of their JSON.'),
  {
    name: 'oldestTime',
    number: 5,
    type: 'microTime',
    doc: 'When the oldest of these events was last seen.',
  },
  {
    name: 'lifetimes',
    number: 6,
    type: { listOf: lifetimeType },
    doc: 'The rules that can apply, the first that matches an event first.',
  },
  {
    name: 'budget',
    number: 7,
    type: { struct: budgetType },
    doc: 'The budget; unset when there is none.',
  },
  {
    name: 'evicted',
    number: 8,
    type: 'int64',
    doc: 'Events that were deleted because of budgets; unset when they are not counted by name.',
  },
  {
    name: 'hiddenRules',
    number: 9,
    type: 'int64',
    doc: 'How many more rules can apply; unset when all are shown.',
  },
  {
    name: 'refused',
    number: 10,
    type: 'int64',
    doc: 'Of a cluster: writes of events that the replica that responds has refused since its start, by limits or because etcd is full or away.',
  },
])
