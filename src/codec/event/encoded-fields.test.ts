import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { eventsGroup } from '../../api/event-groups.ts'
import { eventType } from '../../api/schema.ts'
import type { JsonObject } from '../../lib/json.ts'
import { fieldsIn } from '../../storage/event-fields.ts'
import { OwnWrites } from '../../storage/own-writes.ts'
import { BadValue, openValue, prepareValue, sealValue } from '../../storage/stored-form.ts'
import { structsOf } from '../struct/made-structs.fixture.ts'
import { decodeEventBody, encodeEvent } from './event-json.ts'

const group = eventsGroup('events.k8s.io/v1')
const key = { cluster: 'local', namespace: 'default', name: 'web.1' }
const { name, namespace } = key

/** Texts that a JSON or UTF-8 encoder could change, and names that objects inherit. */
const odd = fc.constantFrom(
  ...['\ud800', 'a\udfffb', '\u{1f600}', '\u2028', '\0', '\x1f', '"', '\\', '\\u0041', '/'],
  ...['é', '\ufffd', '\ufeff', '<&>', '__proto__', 'constructor', '\u212a', '1970-01-01T00:00:00Z'],
)
const oddMembers = fc.record(
  { reason: odd, type: odd, note: odd, action: odd, reportingController: odd },
  { requiredKeys: [] },
)
const oddParts = fc.record(
  {
    regarding: fc.record({ kind: odd, name: odd, uid: odd }, { requiredKeys: [] }),
    related: fc.record({ kind: odd, namespace: odd }, { requiredKeys: [] }),
    deprecatedSource: fc.record({ component: odd }, { requiredKeys: [] }),
    series: fc.record({ count: fc.integer({ min: -3, max: 3 }) }, { requiredKeys: [] }),
    deprecatedCount: fc.integer({ min: -3, max: 3 }),
  },
  { requiredKeys: [] },
)
/** Names that pass validation: JSON.parse of Node 24 confuses some names that are escaped. */
const labelNames = fc.oneof(
  fc.stringMatching(/^[a-z]{1,3}$/),
  fc.constantFrom('constructor', 'A/b'),
)
const labels = fc.dictionary(labelNames, odd, { maxKeys: 80, noNullPrototype: true })

const sentEvents = fc
  .tuple(structsOf(eventType), oddMembers, oddParts, fc.option(labels))
  .map(([made, members, parts, oddLabels]) => {
    const {
      resourceVersion: _,
      labels: __,
      annotations: ___,
      ...metadata
    } = (made['metadata'] ?? {}) as JsonObject
    const labelled = oddLabels === null ? {} : { labels: oddLabels }
    return {
      ...made,
      ...members,
      ...parts,
      metadata: { ...metadata, ...labelled, name, namespace },
    }
  })

test('the fields of an event are those of its encoded form, which is valid', () => {
  fc.assert(
    fc.property(sentEvents, (sent) => {
      const { event } = decodeEventBody(Buffer.from(JSON.stringify(sent)), group)
      const prepared = prepareValue(encodeEvent(event), event)
      const value = Buffer.from(sealValue(prepared, 1_700_000_000_000, 3))
      const parsed = openValue(value, key)
      assert.ok(!(parsed instanceof BadValue), JSON.stringify(parsed))
      assert.deepEqual(fieldsIn(event), parsed.fields)
      const own = new OwnWrites()
      own.sending([{ key: 'k', value: prepared }])
      const recalled = openValue(value, key, (body) => own.take('k', body))
      assert.equal(own.size, 0)
      assert.deepEqual(recalled, parsed)
    }),
    { numRuns: 400 },
  )
})
