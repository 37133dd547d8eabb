import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { exactly } from '../../api/selectors/value-pattern.ts'
import { StatusError } from '../../api/status.ts'
import { readTarget } from '../../gate/target.ts'
import { type ListOptions, readListOptions } from './list-options.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/n/events'
const WATCH_EVENTS = '/apis/events.k8s.io/v1/watch/namespaces/n/events'

const read = (query: string | [string, string][], path = EVENTS): ListOptions => {
  const target = readTarget({ method: 'GET', path, query: new URLSearchParams(query) }, 'local')
  assert.ok(target.isResource && target.place !== undefined)
  return readListOptions({ ...target, place: target.place })
}

/** Without the selectors, which have tests of their own. */
const plain = (
  text: string,
  path?: string,
): Omit<ListOptions, 'labelSelector' | 'selectorTexts'> => {
  const { labelSelector, selectorTexts, ...rest } = read(text, path)
  return rest
}

const defaults = {
  resourceVersion: '',
  match: '',
  continueToken: '',
  limit: 0,
  fieldSelector: [],
  shardSelector: undefined,
  sendInitialEvents: undefined,
  allowWatchBookmarks: false,
  timeoutSeconds: undefined,
  order: undefined,
  listMax: undefined,
}

const initial = { match: 'NotOlderThan', sendInitialEvents: true }

const accepted: readonly (readonly [string, object])[] = [
  ['', {}],
  ['limit=3', { limit: 3 }],
  ['limit=0', {}],
  ['limit=-1', {}],
  ['limit=2&continue=c', { limit: 2, continueToken: 'c' }],
  ['limit=2&continue=c&resourceVersion=5', { limit: 2, continueToken: 'c', resourceVersion: '5' }],
  ['resourceVersion=abc', { resourceVersion: 'abc' }],
  ['resourceVersion=5&resourceVersionMatch=Exact', { resourceVersion: '5', match: 'Exact' }],
  [
    'resourceVersion=0&resourceVersionMatch=NotOlderThan',
    { resourceVersion: '0', match: 'NotOlderThan' },
  ],
  ['timeoutSeconds=5', { timeoutSeconds: 5 }],
  ['timeoutSeconds=0', {}],
  ['watch=false', {}],
  ['watch=0', {}],
  ['watch', initial],
  ['watch=true', initial],
  ['watch=1', initial],
  ['watch=maybe', initial],
  ['watch=true&limit=1', { ...initial, limit: 1 }],
  ['watch=true&resourceVersion=0', { ...initial, resourceVersion: '0' }],
  ['watch=true&resourceVersion=5', { resourceVersion: '5' }],
  [
    'watch=true&resourceVersion=5&continue=c',
    {
      resourceVersion: '5',
      continueToken: 'c',
    },
  ],
  ['watch=true&allowWatchBookmarks=true', { ...initial, allowWatchBookmarks: true }],
  [
    'watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan',
    { ...initial, sendInitialEvents: false },
  ],
  [
    'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=9',
    { ...initial, resourceVersion: '9' },
  ],
  ['shardSelector=&unknown=y', {}],
]

const unlessVersion =
  'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided'
const withContinue =
  'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided'
const needsNotOlderThan =
  'resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'

const contradictory: readonly (readonly [string, string])[] = [
  [
    'resourceVersion=5&resourceVersionMatch=Bogus',
    'resourceVersionMatch: Unsupported value: "Bogus": supported values: "Exact", "NotOlderThan", ""',
  ],
  ['resourceVersionMatch=Exact', unlessVersion],
  [
    'resourceVersion=0&resourceVersionMatch=Exact',
    'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
  ],
  ['limit=1&continue=c&resourceVersionMatch=Exact&resourceVersion=5', withContinue],
  ['continue=c&resourceVersionMatch=Exact', `[${unlessVersion}, ${withContinue}]`],
  [
    'sendInitialEvents=true',
    'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list',
  ],
  ['watch=true&sendInitialEvents=true', needsNotOlderThan],
  ['watch=true&sendInitialEvents=bogus', needsNotOlderThan],
  [
    'watch=true&resourceVersionMatch=NotOlderThan',
    'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
  ],
  ['watch=true&continue=abc', withContinue],
  [
    'watch=true&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=5',
    `[${needsNotOlderThan}, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]`,
  ],
]

const unreadable: readonly (readonly [string, string])[] = [
  ['limit=abc', 'strconv.ParseInt: parsing "abc": invalid syntax'],
  ['watch=true&timeoutSeconds=abc', 'strconv.ParseInt: parsing "abc": invalid syntax'],
  ['labelSelector=!', "unable to parse requirement: found '', expected: identifier"],
  ['watch=true&fieldSelector=bogus%3Dx', 'field label not supported: bogus'],
  ['limit=x&labelSelector=!', 'strconv.ParseInt: parsing "x": invalid syntax'],
  [
    'labelSelector=!&fieldSelector=x',
    "unable to parse requirement: found '', expected: identifier",
  ],
  ['fieldSelector=x&sendInitialEvents=true', "invalid selector: 'x'; can't understand 'x'"],
]

describe('readListOptions', () => {
  test('valid options are accepted', () => {
    for (const [text, options] of accepted) {
      assert.deepEqual(plain(text), { ...defaults, ...options }, text)
    }
  })

  test('contradictory options are a 422 that names them all', () => {
    for (const [text, problem] of contradictory) {
      const message = `ListOptions.meta.k8s.io "" is invalid: ${problem}`
      assert.throws(() => read(text), { code: 422, message }, text)
    }
  })

  test('a 422 has one cause per option', () => {
    assert.throws(
      () => read('resourceVersionMatch=Exact'),
      (error) => {
        assert.ok(error instanceof StatusError)
        assert.deepEqual(error.details, {
          group: 'meta.k8s.io',
          kind: 'ListOptions',
          causes: [
            {
              reason: 'FieldValueForbidden',
              message:
                'Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
              field: 'resourceVersionMatch',
            },
          ],
        })
        return true
      },
    )
  })

  test('an option that cannot be parsed is a 400; numbers are checked before selectors', () => {
    for (const [text, message] of unreadable) {
      assert.throws(() => read(text), { code: 400, message }, text)
    }
  })

  test('a watch path is a watch, with the rules of a list unless the query has watch=true', () => {
    const path = WATCH_EVENTS
    assert.deepEqual(plain('', path), defaults)
    assert.deepEqual(plain('watch=true', path), { ...defaults, ...initial })
    assert.throws(() => read('sendInitialEvents=true', path), { code: 422 })
  })

  test('the name in a path is an additional requirement, which a selector may repeat', () => {
    const path = `${WATCH_EVENTS}/a`
    const label = 'metadata.name'
    const byName = { field: label, label, operator: '=', patterns: exactly('a') }
    assert.deepEqual(read('', path).fieldSelector, [byName])
    assert.deepEqual(read('fieldSelector=metadata.name%3Da', path).fieldSelector, [byName])
    for (const selector of [
      ...['metadata.name%3Db', 'reason%3Da', 'metadata.name!%3Da'],
      ...['metadata.name%3Da|b', 'metadata.name%3Da*'],
    ]) {
      assert.throws(
        () => read(`fieldSelector=${selector}`, path),
        { code: 400, message: "fieldSelector metadata.name doesn't match requested name" },
        selector,
      )
    }
  })

  test('field selectors use the field names of the group version', () => {
    const path = '/api/v1/namespaces/n/events'
    assert.equal(read('fieldSelector=source%3Dkubelet', path).fieldSelector[0]?.field, 'source')
    assert.throws(() => read('fieldSelector=source%3Dkubelet'), { code: 400 })
  })

  test('any query is either accepted or a 400 or 422', () => {
    const name = fc.constantFrom(
      ...['watch', 'limit', 'continue', 'resourceVersion', 'resourceVersionMatch'],
      ...['sendInitialEvents', 'labelSelector', 'fieldSelector', 'timeoutSeconds'],
    )
    const value = fc.oneof(
      fc.constantFrom('', '0', '5', 'true', 'Exact', 'NotOlderThan', 'a=b', 'reason=x'),
      fc.string(),
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value)), fc.boolean(), (pairs, isWatch) => {
        try {
          read(pairs, isWatch ? WATCH_EVENTS : EVENTS)
        } catch (error) {
          assert.ok(error instanceof StatusError && [400, 422].includes(error.code), String(error))
        }
      }),
    )
  })
})
