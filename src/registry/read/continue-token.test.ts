import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { StatusError } from '../../api/status.ts'
import { allEvents } from '../../storage/event-scope.ts'
import { parseVersion } from '../../storage/resource-version.ts'
import type { EventScope } from '../../storage/storage.ts'
import { type ContinuePoint, decodeContinue, encodeContinue } from './continue-token.ts'

const one = { cluster: 'local', namespace: 'ns' }
const all = { cluster: 'local', namespace: undefined }
const version = parseVersion('246999')

const tokenOf = (content: unknown): string =>
  Buffer.from(JSON.stringify(content)).toString('base64url')
const ours = (start: string, rv: unknown = 5): string => tokenOf({ v: 'meta.k8s.io/v1', rv, start })

describe('encodeContinue', () => {
  test('the token has the format of Kubernetes', () => {
    const after = { cluster: 'local', namespace: 'ns', name: 'e1' }
    const content = (token: string) => Buffer.from(token, 'base64url').toString()
    assert.equal(
      content(encodeContinue(one, { after, version })),
      '{"v":"meta.k8s.io/v1","rv":246999,"start":"e1\\u0000"}',
    )
    assert.equal(
      content(encodeContinue(all, { after, version: undefined })),
      '{"v":"meta.k8s.io/v1","rv":-1,"start":"ns/e1\\u0000"}',
    )
    assert.match(encodeContinue(one, { after, version }), /^[\w-]+$/)
  })

  test('decoding a token gives back its point', () => {
    const part = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?$/)
    const ms = fc.integer({ min: -1e12, max: 1e13 })
    const timed = fc.oneof(
      fc.constant({}),
      fc.record({ order: fc.constantFrom('oldest' as const, 'newest' as const), afterMs: ms }),
      fc.record({ nowMs: ms }),
      fc.record({ archive: part, afterUid: fc.uuid() }),
    )
    const plain = fc.record(
      {
        after: fc.record({ cluster: part, namespace: part, name: part }, { noNullPrototype: true }),
        version: fc.option(
          fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }).map((n) => parseVersion(String(n))),
          { nil: undefined },
        ),
      },
      { noNullPrototype: true },
    )
    const point: fc.Arbitrary<ContinuePoint> = fc
      .tuple(plain, timed)
      .map(([one, more]) => ({ ...one, ...more }))
    fc.assert(
      fc.property(point, (given) => {
        const { cluster, namespace } = given.after
        const scopes: readonly EventScope[] = [
          { cluster, namespace },
          { cluster, namespace: undefined },
          allEvents,
        ]
        for (const scope of scopes) {
          assert.deepEqual(decodeContinue(scope, encodeContinue(scope, given)), given)
        }
      }),
    )
  })
})

describe('decodeContinue', () => {
  test('a version beyond the range of numbers is a future version', () => {
    const { version: read } = decodeContinue(one, ours('a\0', 2 ** 62))
    assert.equal(read, parseVersion(String(2n ** 62n)))
  })

  test('a token never leads out of the scope of the request', () => {
    for (const start of ['a\0', 'a/b\0', 'a/b/c\0']) {
      for (const scope of [one, all]) {
        try {
          const { after } = decodeContinue(scope, ours(start))
          assert.equal(after.cluster, 'local', start)
          assert.equal(after.namespace, scope.namespace ?? after.namespace, start)
        } catch (error) {
          assert.match(String(error), /continue key is not valid/)
        }
      }
    }
    assert.deepEqual(decodeContinue(allEvents, ours('a/b/c\0')).after, {
      cluster: 'a',
      namespace: 'b',
      name: 'c',
    })
  })

  test('a token of one namespace is a position in the list of all', () => {
    const { after } = decodeContinue(all, ours('a\0'))
    const place = `${after.namespace}/${after.name}`
    assert.ok(place > 'a\0' && place < 'a-b/c' && place < 'a/c')
  })

  test('an error says what is wrong with the token', () => {
    const refusals: readonly (readonly [string, string])[] = [
      [tokenOf({ v: 'meta.k8s.io/v1', rv: 1 }), 'encoded start key empty (version meta.k8s.io/v1)'],
      [
        tokenOf({ v: 'meta.k8s.io/v1', start: 'a\0' }),
        'incorrect encoded start resourceVersion (version meta.k8s.io/v1)',
      ],
      [ours('a\0', 0), 'incorrect encoded start resourceVersion (version meta.k8s.io/v1)'],
      [
        tokenOf({ v: 'v2', rv: 1, start: 'a\0' }),
        'server does not recognize this encoded version v2',
      ],
      [tokenOf({}), 'server does not recognize this encoded version '],
      ['ab=c', 'illegal base64 data at input byte 2'],
      ['garbage', 'it does not hold JSON'],
      [tokenOf(null), 'it does not hold a JSON object'],
      [tokenOf([]), 'it does not hold a JSON object'],
      [tokenOf('text'), 'it does not hold a JSON object'],
      [ours('a\0', '5'), 'a part of it has the wrong type'],
      [ours('a\0', 1.5), 'the resourceVersion in it is not an integer'],
      [ours('a\0', 1e30), 'the resourceVersion in it is not an integer'],
      [ours('x'.repeat(3000)), 'it is too long'],
      ...[
        'a',
        '\0',
        '..\0',
        '../a\0',
        'a/../b\0',
        'a//b\0',
        '/a\0',
        'a/\0',
        'a/b\0',
        'a/b/c\0',
      ].map((start) => [ours(start), start] as const),
    ]
    for (const [token, problem] of refusals) {
      const message = `invalid continue token: continue key is not valid: ${problem}`
      assert.throws(() => decodeContinue(one, token), { code: 400, message }, problem)
    }
    assert.throws(() => decodeContinue(all, ours('a/b/c\0')), { code: 400 })
  })

  test('any text is either decoded or a 400', () => {
    const scope = fc.constantFrom(one, all)
    const content = fc.record(
      {
        v: fc.constantFrom<unknown>('meta.k8s.io/v1', 'x', 7, null),
        rv: fc.oneof<fc.Arbitrary<unknown>[]>(fc.double(), fc.bigInt().map(Number), fc.string()),
        start: fc.oneof<fc.Arbitrary<unknown>[]>(fc.string(), fc.constant('a\0'), fc.integer()),
      },
      { requiredKeys: [] },
    )
    const base64 = fc.stringMatching(/^[\w-]{0,40}$/)
    const token = fc.oneof(fc.string(), base64, content.map(tokenOf))
    fc.assert(
      fc.property(scope, token, (where, text) => {
        try {
          decodeContinue(where, text)
        } catch (error) {
          assert.ok(error instanceof StatusError && error.code === 400, String(error))
        }
      }),
    )
  })
})
