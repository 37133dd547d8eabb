import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Event, ManagedFieldsEntry } from '../api/event.ts'
import { coreGroup, type EventGroup, eventsGroup } from '../api/event-groups.ts'
import { StatusError } from '../api/status.ts'
import { encodeEvent, readEncoded } from '../codec/event-json.ts'
import type { JsonObject } from '../lib/json.ts'
import { readConfig } from './applied-config.ts'
import { applied } from './apply.ts'
import { difference, fieldSetOfV1, intersection, NO_FIELDS } from './field-set.ts'
import { withManagedFields } from './managed-fields.ts'
import { changesOf, merged, namedFields } from './typed-tree.ts'
import { type Before, liveTree, settled, tracked } from './update-tracking.ts'

const events = eventsGroup('events.k8s.io')
const served = new Set(['v1', events.apiVersion])
const FIRST = '2026-01-01T00:00:00Z'

interface Turn {
  readonly as: string
  readonly fields: JsonObject
  readonly isForced?: boolean
  readonly group?: EventGroup
  readonly at?: string
}

/** What an event goes through, from nothing or from one that nobody applied. */
class Life {
  event: Event | undefined

  constructor(event?: Event) {
    this.event = event && readEncoded(encodeEvent(event))
  }

  get before(): Before | undefined {
    return this.event && { old: this.event, stored: { body: encodeEvent(this.event) } }
  }

  apply({ as: manager, fields, isForced = false, group = events, at = FIRST }: Turn): void {
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

  /** The event without what says who owns it. */
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
  return assert.fail('it was not refused')
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

  test("are dropped by an apply, and in nobody's way", () => {
    const life = new Life(owned(entry('old', 'other/v2'), entry('new', events.apiVersion)))
    assert.equal(refusal(() => life.apply({ as: 'me', fields: { note: 'y' } })).code, 409)
    life.apply({ as: 'me', fields: { note: 'x' } })
    assert.deepEqual(Object.keys(life.owners), ['me Apply', 'new Apply'])

    const alone = new Life(owned(entry('old', 'other/v2')))
    alone.apply({ as: 'me', fields: { note: 'y' } })
    assert.deepEqual(alone.owners, { 'me Apply': { 'f:note': {} } })
  })

  test('take with them what the same manager applied before', () => {
    const life = new Life(owned(entry('me', 'other/v2')))
    life.apply({ as: 'me', fields: { type: 'Normal' } })
    assert.equal(life.event?.note, 'x')
    assert.deepEqual(life.owners, { 'me Apply': { 'f:type': {} } })
  })
})

describe('the first apply', () => {
  test('makes an event of nothing, and owns all it named', () => {
    const life = new Life()
    life.apply({ as: 'one', fields: { metadata: { name: 'e' }, note: 'x', series: { count: 2 } } })
    assert.deepEqual(life.event, {
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

  test('leaves what was there to whoever came before', () => {
    const life = new Life({
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
    life.apply({ as: 'one', fields: { metadata: { labels: { b: '2' } }, note: 'x' } })
    assert.deepEqual(life.owners, {
      'one Apply': { 'f:metadata': { 'f:labels': { 'f:b': {} } }, 'f:note': {} },
      'before-first-apply Update': {
        'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } },
        'f:note': {},
        'f:series': { '.': {}, 'f:count': {} },
        'f:deprecatedSource': { 'f:component': {} },
      },
    })
  })

  test('conflicts with whoever came before', () => {
    const life = new Life({ metadata: { name: 'e' }, note: 'x' })
    assert.equal(
      refusal(() => life.apply({ as: 'one', fields: { note: 'y' } })).message,
      'Apply failed with 1 conflict: conflict with "before-first-apply" using events.k8s.io/v1: .note',
    )
  })
})

describe('applying again', () => {
  test('changes nothing when nothing differs, whenever it is', () => {
    const life = new Life()
    const fields = { note: 'x', metadata: { name: 'e', labels: {}, annotations: null } }
    life.apply({ as: 'one', fields })
    const { event } = life
    life.apply({ as: 'one', fields, at: '2026-02-02T00:00:00Z' })
    assert.deepEqual(life.event, event)
  })

  test('tells when something differs', () => {
    const life = new Life()
    life.apply({ as: 'one', fields: { note: 'x' } })
    life.apply({ as: 'one', fields: { note: 'y' }, at: '2026-02-02T00:00:00Z' })
    assert.equal(life.event?.metadata.managedFields?.[0]?.time, '2026-02-02T00:00:00Z')
  })

  test('removes what is not applied any more', () => {
    const life = new Life()
    life.apply({
      as: 'one',
      fields: { note: 'x', type: 'Normal', series: { count: 2 }, metadata: { labels: { a: '1' } } },
    })
    life.apply({ as: 'one', fields: { note: 'x' } })
    assert.deepEqual(life.fields, { metadata: {}, note: 'x' })
    life.apply({ as: 'one', fields: {} })
    assert.deepEqual(life.event, { metadata: {} })
  })

  test('leaves what somebody else applied too, until they let go of it', () => {
    const life = new Life()
    for (const as of ['one', 'two']) life.apply({ as, fields: { note: 'x' } })
    life.apply({ as: 'one', fields: {} })
    assert.deepEqual(life.fields, { metadata: {}, note: 'x' })
    life.apply({ as: 'two', fields: {} })
    assert.deepEqual(life.fields, { metadata: {} })
  })

  test('leaves what somebody else has written since', () => {
    const life = new Life()
    life.apply({ as: 'one', fields: { note: 'x', type: 'Normal' } })
    life.update('two', (event) => ({ ...event, note: 'y' }))
    life.apply({ as: 'one', fields: { type: 'Normal' } })
    assert.equal(life.event?.note, 'y')
  })

  test('clears a field that is applied as null, and owns that', () => {
    const life = new Life({ metadata: {}, note: 'x' })
    life.apply({ as: 'one', fields: { note: null }, isForced: true })
    assert.equal(life.event?.note, undefined)
    assert.deepEqual(life.owners, { 'one Apply': { 'f:note': {} } })
  })
})

describe('entries of lists', () => {
  const owner = (uid: string): JsonObject => ({ apiVersion: 'v1', kind: 'Pod', name: 'p', uid })
  const of = (name: string): JsonObject => ({
    metadata: { finalizers: [`a/${name}`], ownerReferences: [owner(name)] },
  })

  test('belong to whoever applied them, and go with them', () => {
    const life = new Life()
    life.apply({ as: 'one', fields: of('x') })
    life.apply({ as: 'two', fields: of('y') })
    assert.deepEqual(life.fields, {
      metadata: { ownerReferences: [owner('x'), owner('y')], finalizers: ['a/x', 'a/y'] },
    })
    life.apply({ as: 'one', fields: {} })
    assert.deepEqual(life.fields, of('y'))
  })

  test('are taken as a whole', () => {
    const life = new Life()
    life.apply({ as: 'one', fields: of('x') })
    const fields = { metadata: { ownerReferences: [{ ...owner('x'), name: 'q' }] } }
    assert.match(
      refusal(() => life.apply({ as: 'two', fields })).message,
      /conflict with "one": \.metadata\.ownerReferences\[uid="x"\]$/,
    )
  })
})

describe('conflicts', () => {
  test('are named one by one, with everybody they are with', () => {
    const life = new Life({ metadata: {}, type: 'Normal', reason: 'r', regarding: { name: 'a' } })
    life.apply({ as: 'two', fields: { note: 'x', metadata: { labels: { l: '1' } } } })
    life.apply({ as: 'one', fields: { note: 'x' } })
    const fields = {
      note: 'y',
      reason: 's',
      regarding: { name: 'b' },
      metadata: { labels: { l: '2' } },
    }
    const { code, message, details } = refusal(() => life.apply({ as: 'three', fields }))
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

  test('are counted by the thousand and named as far as anybody reads', () => {
    const labels = (value: string): JsonObject =>
      Object.fromEntries(Array.from({ length: 1500 }, (_, at) => [`l${at}`, value]))
    const life = new Life()
    life.apply({ as: 'one', fields: { metadata: { labels: labels('1') } } })
    const { message, details } = refusal(() =>
      life.apply({ as: 'two', fields: { metadata: { labels: labels('2') } } }),
    )
    assert.match(message, /^Apply failed with 1500 conflicts: /)
    assert.equal(details?.causes?.length, 1000)
  })

  test('are none where the value is the same', () => {
    const life = new Life()
    life.apply({ as: 'one', fields: { note: 'x', eventTime: '2026-01-02T03:04:05.000000Z' } })
    life.apply({ as: 'two', fields: { note: 'x', eventTime: '2026-01-02T03:04:05Z' } })
    assert.deepEqual(life.owners['one Apply'], life.owners['two Apply'])
  })

  test('are won by force', () => {
    const life = new Life()
    life.apply({ as: 'one', fields: { note: 'x', type: 'Normal' } })
    life.apply({ as: 'two', fields: { note: 'y' }, isForced: true })
    assert.equal(life.event?.note, 'y')
    assert.deepEqual(life.owners, { 'one Apply': { 'f:type': {} }, 'two Apply': { 'f:note': {} } })
  })
})

describe('more owners than an event may have', () => {
  test('are refused', () => {
    const life = new Life()
    for (let at = 0; at < 128; at++) life.apply({ as: `m${at}`, fields: { note: 'x' } })
    const error = refusal(() => life.apply({ as: 'one too many', fields: { note: 'x' } }))
    assert.equal(error.code, 413)
  })
})

describe('two names for the same fields', () => {
  const core = coreGroup

  test('are the same fields, each owner named by its own', () => {
    const life = new Life()
    life.apply({ as: 'one', fields: { note: 'x' } })
    life.apply({ as: 'two', fields: { message: 'x', involvedObject: { name: 'p' } }, group: core })
    assert.deepEqual(life.owners, {
      'one Apply': { 'f:note': {} },
      'two Apply': { 'f:message': {}, 'f:involvedObject': {} },
    })
    assert.match(
      refusal(() => life.apply({ as: 'three', fields: { note: 'y' } })).message,
      /conflicts with "one":\n- \.note\nconflicts with "two":\n- \.message$/,
    )
  })

  test('are one applier’s, who may change from one to the other', () => {
    const life = new Life()
    life.apply({ as: 'one', fields: { note: 'x', type: 'Normal' } })
    life.apply({ as: 'one', fields: { message: 'y' }, group: core })
    assert.deepEqual(life.fields, { metadata: {}, note: 'y' })
    assert.deepEqual(life.owners, { 'one Apply': { 'f:message': {} } })
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
const turn: fc.Arbitrary<Turn & { readonly isUpdate: boolean }> = fc.record({
  as: fc.constantFrom('one', 'two', 'three'),
  fields,
  isForced: fc.boolean(),
  isUpdate: fc.boolean(),
})

/** Takes the turns that are not refused. */
function live(turns: readonly (Turn & { readonly isUpdate: boolean })[]): Life {
  const life = new Life({ metadata: { labels: { a: '1' } }, note: '1' })
  for (const each of turns) {
    if (!each.isUpdate) orRefused(() => life.apply(each))
    else {
      const change = readConfig(
        { apiVersion: events.apiVersion, kind: 'Event', ...each.fields },
        events,
      )
      const changed = (event: Event): Event =>
        readEncoded(Buffer.from(JSON.stringify(merged(liveTree(encodeEvent(event)), change.tree))))
      life.update(each.as, changed)
    }
  }
  return life
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

function othersOf(life: Life, self: string): readonly ManagedFieldsEntry[] {
  const entries = life.event?.metadata.managedFields ?? []
  return entries.filter(({ manager, operation }) => manager !== self || operation !== 'Apply')
}

describe('whatever went before', () => {
  const lives = fc.array(turn, { maxLength: 6 })

  test('applying twice is applying once', () => {
    fc.assert(
      fc.property(lives, turn, (turns, last) => {
        const life = live(turns)
        if (!orRefused(() => life.apply(last))) return
        const { event } = life
        life.apply({ ...last, isForced: false, at: '2026-02-02T00:00:00Z' })
        assert.deepEqual(life.event, event)
      }),
    )
  })

  test('an apply removes nothing that others own', () => {
    fc.assert(
      fc.property(lives, turn, (turns, last) => {
        const life = live(turns)
        const before = namedFields(treeOf(life.event))
        const others = othersOf(life, last.as)
        if (!orRefused(() => life.apply(last))) return
        const after = namedFields(treeOf(life.event))
        for (const { manager, fieldsV1 } of others) {
          const owned = intersection(fieldSetOfV1(fieldsV1) ?? NO_FIELDS, before)
          assert.equal(difference(owned, after).size, 0, manager)
        }
      }),
    )
  })

  test('an apply without force changes nothing that others own', () => {
    fc.assert(
      fc.property(lives, turn, (turns, last) => {
        const life = live(turns)
        const before = treeOf(life.event)
        const others = othersOf(life, last.as)
        if (!orRefused(() => life.apply({ ...last, isForced: false }))) return
        const { set, removed } = changesOf(before, treeOf(life.event))
        for (const { manager, fieldsV1 } of others) {
          const owned = intersection(fieldSetOfV1(fieldsV1) ?? NO_FIELDS, namedFields(before))
          assert.equal(intersection(owned, set).size, 0, manager)
          assert.equal(intersection(owned, removed).size, 0, manager)
        }
      }),
    )
  })

  test('who applies by force owns what they applied, and it is there', () => {
    fc.assert(
      fc.property(lives, turn, (turns, last) => {
        const life = live(turns)
        life.apply({ ...last, isForced: true })
        const config = readConfig(
          { apiVersion: events.apiVersion, kind: 'Event', ...last.fields },
          events,
        )
        const owned = fieldSetOfV1(life.owners[`${last.as} Apply`] ?? {}) ?? NO_FIELDS
        assert.equal(difference(config.fields, owned).size, 0)
        const tree = treeOf(life.event)
        const { set } = changesOf(tree, merged(tree, config.tree))
        // What is empty is named and owned, but leaves no trace in the event.
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
