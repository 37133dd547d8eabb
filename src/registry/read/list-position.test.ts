import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginning, parseVersion } from '../../storage/resource-version.ts'
import { encodeContinue } from './continue-token.ts'
import { type ListPosition, type ListRequest, listPosition, readVersion } from './list-position.ts'

const scope = { cluster: 'local', namespace: 'ns' }
const after = { cluster: 'local', namespace: 'ns', name: 'e1' }
const version = parseVersion('246999')
const token = encodeContinue(scope, { after, version })
const latest = encodeContinue(scope, { after, version: undefined })

const usual = { order: 'key' as const, nowMs: 5_000 }
const defaults: ListRequest = {
  resourceVersion: '',
  match: '',
  continueToken: '',
  limit: 0,
  order: undefined,
}
const nowhere: ListPosition = { at: undefined, notOlderThan: undefined, after: undefined, ...usual }

test('listPosition: version, match and limit together select the state', () => {
  const rv = '246999'
  const cases: readonly (readonly [Partial<ListRequest>, Partial<ListPosition>])[] = [
    [{}, {}],
    [{ limit: 3 }, {}],
    [{ resourceVersion: '0' }, { notOlderThan: beginning }],
    [{ resourceVersion: '0', limit: 2 }, { notOlderThan: beginning }],
    [{ resourceVersion: '0', match: 'NotOlderThan', limit: 2 }, { notOlderThan: beginning }],
    [{ resourceVersion: rv }, { notOlderThan: version }],
    [{ resourceVersion: rv, limit: 1 }, { at: version }],
    [{ resourceVersion: rv, limit: 1, match: 'NotOlderThan' }, { notOlderThan: version }],
    [{ resourceVersion: rv, match: 'Exact' }, { at: version }],
    [{ continueToken: token }, { at: version, after }],
    [
      { continueToken: token, limit: 10 },
      { at: version, after },
    ],
    [
      { continueToken: token, resourceVersion: '0' },
      { at: version, after },
    ],
    [{ continueToken: latest, limit: 10 }, { after }],
  ]
  for (const [request, position] of cases) {
    assert.deepEqual(
      listPosition(scope, { ...defaults, ...request }, usual),
      {
        ...nowhere,
        ...position,
        ...(request.continueToken === undefined
          ? { versionText: request.resourceVersion ?? '', isOrderOptional: true }
          : { afterMs: undefined, isOrderOptional: false }),
      },
      JSON.stringify(request),
    )
  }
})

test('listPosition: an invalid token is reported before a version that is not allowed with it', () => {
  const read = (continueToken: string) =>
    listPosition(scope, { ...defaults, continueToken, resourceVersion: '5' }, usual)
  assert.throws(() => read('garbage'), { code: 400, message: /^invalid continue token: / })
  assert.throws(() => read(token), {
    code: 400,
    message: 'specifying resource version is not allowed when using continue',
  })
})

test('readVersion: an invalid version is a 400 with the error of Go', () => {
  assert.equal(readVersion(''), undefined)
  assert.equal(readVersion('0'), beginning)
  for (const text of ['abc', '-1', '1.5', ' 1']) {
    assert.throws(() => readVersion(text), {
      code: 400,
      message:
        `invalid resource version: resourceVersion: Invalid value: "${text}": ` +
        `strconv.ParseUint: parsing "${text}": invalid syntax`,
    })
  }
  assert.throws(() => readVersion('18446744073709551616'), {
    code: 400,
    message: /: strconv\.ParseUint: parsing "18446744073709551616": value out of range$/,
  })
})

test('listPosition: a token keeps the order and the time of its list', () => {
  const point = { after, version, order: 'newest' as const, afterMs: 7, nowMs: 3 }
  const continueToken = encodeContinue(scope, point)
  const found = listPosition(scope, { ...defaults, continueToken }, usual)
  const { order, afterMs, nowMs, isOrderOptional } = found
  assert.deepEqual([order, afterMs, nowMs, isOrderOptional], ['newest', 7, 3, false])
  assert.throws(() => listPosition(scope, { ...defaults, continueToken, order: 'oldest' }, usual), {
    code: 400,
    message: 'the continue token is of a list with another order',
  })
  assert.throws(
    () => listPosition(scope, { ...defaults, continueToken: token, order: 'oldest' }, usual),
    { code: 400, message: 'the continue token is of a list with another order' },
  )
})

test('listPosition: a requested order is not optional, the default is', () => {
  const read = (order: 'oldest' | undefined) => {
    const found = listPosition(scope, { ...defaults, order }, { order: 'newest', nowMs: 0 })
    return [found.order, found.isOrderOptional]
  }
  assert.deepEqual(read('oldest'), ['oldest', false])
  assert.deepEqual(read(undefined), ['newest', true])
})
