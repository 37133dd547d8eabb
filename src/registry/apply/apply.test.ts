import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Event, ManagedFieldsEntry } from '../../api/event.ts'
import { coreGroup, type EventGroup, eventsGroup } from '../../api/event-groups.ts'
import { StatusError } from '../../api/status.ts'
import { encodeEvent, readEncoded } from '../../codec/event/event-json.ts'
import type { JsonObject } from '../../lib/json.ts'
import { readConfig } from './applied-config.ts'
import { applied } from './apply.ts'
import { difference, fieldSetOfV1, intersection, NO_FIELDS } from './field-set.ts'
import { withManagedFields } from './managed-fields.ts'
import { changesOf, merged, namedFields } from './structured-diff.ts'
import { type Before, liveTree, settled, tracked } from './update-tracking.ts'

const events = eventsGroup('events.k8s.io')
const served = new Set(['v1', events.apiVersion])
const FIRST = '2026-01-01T00:00:00Z'

interface Step {
  readonly as: string
  readonly fields: JsonObject
  readonly isForced?: boolean
  readonly group?: EventGroup
  readonly at?: string
}

/** An event through several writes, starting with none or with one that was never applied. */
class History {
  event: Event | undefined

  constructor(event?: Event) {
    this.event = event && readEncoded(encodeEvent(event))
  }

  get before(): Before | undefined {
    return this.event && { old: this.event, stored: { body: encodeEvent(this.event) } }
  }

  apply({ as: manager, fields, isForced = false, group = events, at = FIRST }: Step): void {
    const { before } = this
    const config = readConfig({ apiVersion: group.apiVersion, kind: 'Event', ...fields }, group)
    const { apiVersion } = group
    const made = applied(before, config, { manager, apiVersion, isForced, at, served })
    this.event = readEncoded(
      encodeEvent(
        before === undefined
          ? withManagedFields(made.event, made.managedFields)
          : settled(made.event, made.managedFields, before),
      ),
    )
  }

  update(manager: string, change: (event: Event) => Event): void {
    const { event, before } = this
    assert.ok(event && before)
    const writing = { manager, apiVersion: events.apiVersion, at: FIRST }
    const next = tracked(change(event), before, {
      sent: undefined,
      served,
      writing: () => writing,
    })
    this.event = readEncoded(encodeEvent(next))
  }

  /** The event without its managedFields. */
  get fields(): Event {
    return withManagedFields(this.event ?? { metadata: {} }, [])
  }

  get owners(): Readonly<Record<string, unknown>> {
    const entries = this.event?.metadata.managedFields ?? []
    return Object.fromEntries(
      entries.map(({ manager = '', operation, fieldsV1 }) => [`${manager} ${operation}`, fieldsV1]),
    )
  }
}

function refusal(run: () => void): StatusError {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof StatusError)
    return error
  }
  return assert.fail('the apply succeeded')
}

describe('owners whose version is not served', () => {
  const entry = (manager: string, apiVersion: string): ManagedFieldsEntry => ({
    manager,
    operation: 'Apply',
    apiVersion,
    time: FIRST,
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:note': {} },
  })
  const owned = (...managedFields: readonly ManagedFieldsEntry[]): Event => ({
    metadata: { name: 'e', namespace: 'n', managedFields },
    note: 'x',
  })

  test('are dropped by an apply without conflicts', () => {
    const history = new History(owned(entry('old', 'other/v2'), entry('new', events.apiVersion)))
    assert.equal(refusal(() => history.apply({ as: 'me', fields: { note: 'y' } })).code, 409)
    history.apply({ as: 'me', fields: { note: 'x' } })
    assert.deepEqual(Object.keys(history.owners), ['me Apply', 'new Apply'])

    const alone = new History(owned(entry('old', 'other/v2')))
    alone.apply({ as: 'me', fields: { note: 'y' } })
    assert.deepEqual(alone.owners, { 'me Apply': { 'f:note': {} } })
  })

  test('leave the fields that the same manager applied in such a version', () => {
    const history = new History(owned(entry('me', 'other/v2')))
    history.apply({ as: 'me', fields: { type: 'Normal' } })
    assert.equal(history.event?.note, 'x')
    assert.deepEqual(history.owners, { 'me Apply': { 'f:type': {} } })
  })
})

describe('the first apply', () => {
  test('creates the event, and its manager owns all applied fields', () => {
    const history = new History()
    history.apply({
      as: 'one',
      fields: { metadata: { name: 'e' }, note: 'x', series: { count: 2 } },
    })
    assert.deepEqual(history.event, {
      metadata: {
        name: 'e',
        managedFields: [
          {
            manager: 'one',
            operation: 'Apply',
            apiVersion: 'events.k8s.io/v1',
            time: FIRST,
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:note': {}, 'f:series': { 'f:count': {} } },
          },
        ],
      },
      series: { count: 2 },
      note: 'x',
    })
  })

  test('gives existing fields the owner before-first-apply', () => {
    const history = new History({
      metadata: {
        name: 'e',
        namespace: 'n',
        uid: 'u',
        creationTimestamp: FIRST,
        labels: { a: '1' },
      },
      note: 'x',
      series: { count: 2 },
      deprecatedSource: { component: 'c' },
    })
    history.apply({ as: 'one', fields: { metadata: { labels: { b: '2' } }, note: 'x' } })
    assert.deepEqual(history.owners, {
      'one Apply': { 'f:metadata': { 'f:labels': { 'f:b': {} } }, 'f:note': {} },
      'before-first-apply Update': {
        'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } },
        'f:note': {},
        'f:series': { '.': {}, 'f:count': {} },
        'f:deprecatedSource': { 'f:component': {} },
      },
    })
  })

  test('gives the marks of a delete no owner', () => {
    const history = new History({
      metadata: { name: 'e', finalizers: ['a.io/b'], deletionTimestamp: FIRST },
      note: 'x',
    })
    history.apply({ as: 'one', fields: { note: 'x' } })
    assert.deepEqual(history.owners['before-first-apply Update'], {
      'f:metadata': { 'f:finalizers': { '.': {}, 'v:"a.io/b"': {} } },
      'f:note': {},
    })
  })

  test('conflicts with before-first-apply', () => {
    const history = new History({ metadata: { name: 'e' }, note: 'x' })
    assert.equal(
      refusal(() => history.apply({ as: 'one', fields: { note: 'y' } })).message,
      'Apply failed with 1 conflict: conflict with "before-first-apply" using events.k8s.io/v1: .note',
    )
  })
})

describe('applying again', () => {
  test('changes nothing, not even times, when it is equal', () => {
    const history = new History()
    const fields = { note: 'x', metadata: { name: 'e', labels: {}, annotations: null } }
    history.apply({ as: 'one', fields })
    const { event } = history
    history.apply({ as: 'one', fields, at: '2026-02-02T00:00:00Z' })
    assert.deepEqual(history.event, event)
  })

  test('updates the time when it is different', () => {
    const history = new History()
    history.apply({ as: 'one', fields: { note: 'x' } })
    history.apply({ as: 'one', fields: { note: 'y' }, at: '2026-02-02T00:00:00Z' })
    assert.equal(history.event?.metadata.managedFields?.[0]?.time, '2026-02-02T00:00:00Z')
  })

  test('removes fields that are no longer applied', () => {
    const history = new History()
    history.apply({
      as: 'one',
      fields: { note: 'x', type: 'Normal', series: { count: 2 }, metadata: { labels: { a: '1' } } },
    })
    history.apply({ as: 'one', fields: { note: 'x' } })
    assert.deepEqual(history.fields, { metadata: {}, note: 'x' })
    history.apply({ as: 'one', fields: {} })
    assert.deepEqual(history.event, { metadata: {} })
  })

  test('leaves a field with another applier until that one drops it, too', () => {
    const history = new History()
    for (const as of ['one', 'two']) history.apply({ as, fields: { note: 'x' } })
    history.apply({ as: 'one', fields: {} })
    assert.deepEqual(history.fields, { metadata: {}, note: 'x' })
    history.apply({ as: 'two', fields: {} })
    assert.deepEqual(history.fields, { metadata: {} })
  })

  test('leaves a field that another manager has updated since', () => {
    const history = new History()
    history.apply({ as: 'one', fields: { note: 'x', type: 'Normal' } })
    history.update('two', (event) => ({ ...event, note: 'y' }))
    history.apply({ as: 'one', fields: { type: 'Normal' } })
    assert.equal(history.event?.note, 'y')
  })

  test('clears and owns a field applied as null', () => {
    const history = new History({ metadata: {}, note: 'x' })
    history.apply({ as: 'one', fields: { note: null }, isForced: true })
    assert.equal(history.event?.note, undefined)
    assert.deepEqual(history.owners, { 'one Apply': { 'f:note': {} } })
  })
})

describe('entries of lists', () => {
  const owner = (uid: string): JsonObject => ({ apiVersion: 'v1', kind: 'Pod', name: 'p', uid })
  const of = (name: string): JsonObject => ({
    metadata: { finalizers: [`a/${name}`], ownerReferences: [owner(name)] },
  })

  test('are owned by their applier and removed with it', () => {
    const history = new History()
    history.apply({ as: 'one', fields: of('x') })
    history.apply({ as: 'two', fields: of('y') })
    assert.deepEqual(history.fields, {
      metadata: { ownerReferences: [owner('x'), owner('y')], finalizers: ['a/x', 'a/y'] },
    })
    history.apply({ as: 'one', fields: {} })
    assert.deepEqual(history.fields, of('y'))
  })

  test('are owned as a whole', () => {
    const history = new History()
    history.apply({ as: 'one', fields: of('x') })
    const fields = { metadata: { ownerReferences: [{ ...owner('x'), name: 'q' }] } }
    assert.match(
      refusal(() => history.apply({ as: 'two', fields })).message,
      /conflict with "one": \.metadata\.ownerReferences\[uid="x"\]$/,
    )
  })
})

describe('conflicts', () => {
  test('are each named with their owner', () => {
    const history = new History({
      metadata: {},
      type: 'Normal',
      reason: 'r',
      regarding: { name: 'a' },
    })
    history.apply({ as: 'two', fields: { note: 'x', metadata: { labels: { l: '1' } } } })
    history.apply({ as: 'one', fields: { note: 'x' } })
    const fields = {
      note: 'y',
      reason: 's',
      regarding: { name: 'b' },
      metadata: { labels: { l: '2' } },
    }
    const { code, message, details } = refusal(() => history.apply({ as: 'three', fields }))
    assert.equal(code, 409)
    assert.equal(
      message,
      [
        'Apply failed with 5 conflicts: conflicts with "before-first-apply" using events.k8s.io/v1:',
        '- .reason',
        '- .regarding',
        'conflicts with "one":',
        '- .note',
        'conflicts with "two":',
        '- .note',
        '- .metadata.labels.l',
      ].join('\n'),
    )
    assert.deepEqual(details?.causes?.at(-1), {
      reason: 'FieldManagerConflict',
      message: 'conflict with "two"',
      field: '.metadata.labels.l',
    })
    assert.equal(details?.causes?.length, 5)
  })

  test('are all counted, and the first 1000 are named', () => {
    const labels = (value: string): JsonObject =>
      Object.fromEntries(Array.from({ length: 1500 }, (_, at) => [`l${at}`, value]))
    const history = new History()
    history.apply({ as: 'one', fields: { metadata: { labels: labels('1') } } })
    const { message, details } = refusal(() =>
      history.apply({ as: 'two', fields: { metadata: { labels: labels('2') } } }),
    )
    assert.match(message, /^Apply failed with 1500 conflicts: /)
    assert.equal(details?.causes?.length, 1000)
  })

  test('do not include equal values', () => {
    const history = new History()
    history.apply({ as: 'one', fields: { note: 'x', eventTime: '2026-01-02T03:04:05.000000Z' } })
    history.apply({ as: 'two', fields: { note: 'x', eventTime: '2026-01-02T03:04:05Z' } })
    assert.deepEqual(history.owners['one Apply'], history.owners['two Apply'])
  })

  test('are resolved by a forced apply, which takes over the fields', () => {
    const history = new History()
    history.apply({ as: 'one', fields: { note: 'x', type: 'Normal' } })
    history.apply({ as: 'two', fields: { note: 'y' }, isForced: true })
    assert.equal(history.event?.note, 'y')
    assert.deepEqual(history.owners, {
      'one Apply': { 'f:type': {} },
      'two Apply': { 'f:note': {} },
    })
  })
})

describe('more owners than an event may have', () => {
  test('make an apply fail', () => {
    const history = new History()
    for (let at = 0; at < 128; at++) history.apply({ as: `m${at}`, fields: { note: 'x' } })
    const error = refusal(() => history.apply({ as: 'one too many', fields: { note: 'x' } }))
    assert.equal(error.code, 413)
  })
})

describe('field names of both groups', () => {
  const core = coreGroup

  test('mean the same field, shown with the name of each owner', () => {
    const history = new History()
    history.apply({ as: 'one', fields: { note: 'x' } })
    history.apply({
      as: 'two',
      fields: { message: 'x', involvedObject: { name: 'p' } },
      group: core,
    })
    assert.deepEqual(history.owners, {
      'one Apply': { 'f:note': {} },
      'two Apply': { 'f:message': {}, 'f:involvedObject': {} },
    })
    assert.match(
      refusal(() => history.apply({ as: 'three', fields: { note: 'y' } })).message,
      /conflicts with "one":\n- \.note\nconflicts with "two":\n- \.message$/,
    )
  })

  test('allow an applier to switch from one group to the other', () => {
    const history = new History()
    history.apply({ as: 'one', fields: { note: 'x', type: 'Normal' } })
    history.apply({ as: 'one', fields: { message: 'y' }, group: core })
    assert.deepEqual(history.fields, { metadata: {}, note: 'y' })
    assert.deepEqual(history.owners, { 'one Apply': { 'f:message': {} } })
  })
})

const label = fc.constantFrom('a', 'b', '__proto__', 'constructor')
const value = fc.constantFrom('1', '2')
const fields: fc.Arbitrary<JsonObject> = fc
  .record(
    {
      note: value,
      type: value,
      deprecatedCount: fc.constantFrom(1, 2),
      regarding: fc.record({ kind: value, name: value }, { requiredKeys: [] }),
      series: fc.record(
        { count: fc.constantFrom(2, 3), lastObservedTime: fc.constant('2026-01-02T03:04:05Z') },
        { requiredKeys: [] },
      ),
      metadata: fc.record(
        {
          labels: fc.array(fc.tuple(label, value)).map((entries) => Object.fromEntries(entries)),
          finalizers: fc.uniqueArray(fc.constantFrom('a/x', 'a/y', 'a/z')),
          ownerReferences: fc.uniqueArray(
            fc.record({ uid: fc.constantFrom('u1', 'u2'), name: value }),
            { selector: ({ uid }) => uid },
          ),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: [] },
  )
  .map((config) => JSON.parse(JSON.stringify(config)))
const step: fc.Arbitrary<Step & { readonly isUpdate: boolean }> = fc.record({
  as: fc.constantFrom('one', 'two', 'three'),
  fields,
  isForced: fc.boolean(),
  isUpdate: fc.boolean(),
})

/** Runs the steps; refused ones are skipped. */
function historyOf(steps: readonly (Step & { readonly isUpdate: boolean })[]): History {
  const history = new History({ metadata: { labels: { a: '1' } }, note: '1' })
  for (const each of steps) {
    if (!each.isUpdate) orRefused(() => history.apply(each))
    else {
      const change = readConfig(
        { apiVersion: events.apiVersion, kind: 'Event', ...each.fields },
        events,
      )
      const changed = (event: Event): Event =>
        readEncoded(Buffer.from(JSON.stringify(merged(liveTree(encodeEvent(event)), change.tree))))
      history.update(each.as, changed)
    }
  }
  return history
}

function orRefused(run: () => void): boolean {
  try {
    run()
    return true
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error))
    return false
  }
}

function treeOf(event: Event | undefined): JsonObject {
  return liveTree(encodeEvent(event ?? { metadata: {} }))
}

function othersOf(history: History, self: string): readonly ManagedFieldsEntry[] {
  const entries = history.event?.metadata.managedFields ?? []
  return entries.filter(({ manager, operation }) => manager !== self || operation !== 'Apply')
}

describe('after any history', () => {
  const histories = fc.array(step, { maxLength: 6 })

  test('an apply is idempotent', () => {
    fc.assert(
      fc.property(histories, step, (steps, last) => {
        const history = historyOf(steps)
        if (!orRefused(() => history.apply(last))) return
        const { event } = history
        history.apply({ ...last, isForced: false, at: '2026-02-02T00:00:00Z' })
        assert.deepEqual(history.event, event)
      }),
    )
  })

  test('an apply removes nothing that others own', () => {
    fc.assert(
      fc.property(histories, step, (steps, last) => {
        const history = historyOf(steps)
        const before = namedFields(treeOf(history.event))
        const others = othersOf(history, last.as)
        if (!orRefused(() => history.apply(last))) return
        const after = namedFields(treeOf(history.event))
        for (const { manager, fieldsV1 } of others) {
          const owned = intersection(fieldSetOfV1(fieldsV1) ?? NO_FIELDS, before)
          assert.equal(difference(owned, after).size, 0, manager)
        }
      }),
    )
  })

  test('an apply without force changes nothing that others own', () => {
    fc.assert(
      fc.property(histories, step, (steps, last) => {
        const history = historyOf(steps)
        const before = treeOf(history.event)
        const others = othersOf(history, last.as)
        if (!orRefused(() => history.apply({ ...last, isForced: false }))) return
        const { set, removed } = changesOf(before, treeOf(history.event))
        for (const { manager, fieldsV1 } of others) {
          const owned = intersection(fieldSetOfV1(fieldsV1) ?? NO_FIELDS, namedFields(before))
          assert.equal(intersection(owned, set).size, 0, manager)
          assert.equal(intersection(owned, removed).size, 0, manager)
        }
      }),
    )
  })

  test('a forced apply owns all its fields, and the event has them', () => {
    fc.assert(
      fc.property(histories, step, (steps, last) => {
        const history = historyOf(steps)
        history.apply({ ...last, isForced: true })
        const config = readConfig(
          { apiVersion: events.apiVersion, kind: 'Event', ...last.fields },
          events,
        )
        const owned = fieldSetOfV1(history.owners[`${last.as} Apply`] ?? {}) ?? NO_FIELDS
        assert.equal(difference(config.fields, owned).size, 0)
        const tree = treeOf(history.event)
        const { set } = changesOf(tree, merged(tree, config.tree))
        // Empty values are owned, but do not appear in the event.
        const missing = intersection(set, config.fields)
        assert.deepEqual(
          treeOf(readEncoded(Buffer.from(JSON.stringify(merged(tree, config.tree))))),
          tree,
        )
        assert.equal(intersection(missing, namedFields(tree)).size, 0)
      }),
    )
  })
})
