/** Several values, beginnings of values and texts anywhere, in everything that takes a field selector. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type EventApiUnderTest, withEventApi } from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import { makeEvent, type WireEvent } from '../../support/wire-event.ts'

const SUMMARIES = '/apis/tidings.dev/v1alpha1'

const events: readonly (readonly [name: string, reason: string, pod: string])[] = [
  ['a', 'BackOff', 'checkout-1'],
  ['b', 'Unhealthy', 'checkout-2'],
  ['c', 'Pulled', 'cart-1'],
  ['d', 'a|b*', 'checkout'],
]

describe('words of field selectors', () => {
  let api: EventApiUnderTest
  withEventApi({
    begin: async (started) => {
      api = started
      for (const namespace of ['shop', 'shop-2', 'other']) {
        for (const [name, reason, pod] of events) await create(namespace, name, reason, pod)
      }
    },
  })

  const create = async (
    namespace: string,
    name: string,
    reason: string,
    pod: string,
  ): Promise<void> => {
    const regarding = { kind: 'Pod', namespace, name: pod }
    const body = makeEvent(namespace, name, { reason, regarding, note: `${reason} again` })
    const { status, text } = await api.call({ method: 'POST', at: namespace, body })
    assert.equal(status, 201, text)
  }

  const namesIn = async (at: string, fieldSelector: string, path?: string): Promise<string> => {
    const { status, json, text } = await api.call({
      at,
      query: { fieldSelector },
      ...(path !== undefined && { path }),
    })
    assert.equal(status, 200, text)
    return json.items.map(({ metadata }: WireEvent) => metadata.name).join('')
  }

  test('lists', async () => {
    for (const [selector, expected] of [
      ['reason=BackOff|Unhealthy', 'ab'],
      ['reason!=BackOff|Unhealthy', 'cd'],
      ['reason=a\\|b\\*', 'd'],
      ['reason=a\\|*', 'd'],
      ['reason=U*|Pulled', 'bc'],
      ['name=checkout-*', 'ab'],
      ['name!=checkout-*|cart-1', 'd'],
      ['regarding.kind=Pod,regarding.name=cart-1|checkout-2', 'bc'],
      ['mentions=Pod/checkout-*', 'ab'],
      ['mentions=po/checkout-1|pods/cart-1', 'ac'],
      ['metadata.name=a|c|none', 'ac'],
      ['metadata.name=a*', 'a'],
      ['search=CHECKOUT', 'abd'],
      ['search=pulled|checkout-2', 'bc'],
      ['search=checkout,search!=backoff', 'bd'],
      ['text=backoff|pulled', 'ac'],
      ['text=checkout', ''],
    ] as const) {
      assert.equal(await namesIn('shop', selector), expected, selector)
    }
    assert.equal(await namesIn('', 'metadata.namespace=shop|other,reason=Pulled'), 'cc')
    assert.equal(await namesIn('', 'metadata.namespace=shop*,metadata.name=a|b'), 'abab')
    const core = '/api/v1/namespaces/shop/events'
    assert.equal(await namesIn('shop', 'involvedObject.name=checkout*', core), 'abd')
  })

  test('pages continue after each other', async () => {
    const found: string[] = []
    let token = ''
    do {
      const query = { fieldSelector: 'name=checkout*,reason!=Pulled', limit: 2, continue: token }
      const { json } = await api.call({ at: '', query })
      found.push(...json.items.map(({ metadata }: WireEvent) => metadata.name))
      token = json.metadata.continue ?? ''
    } while (token !== '')
    assert.equal(found.join(''), 'abdabdabd')
  })

  test('watches', async () => {
    await using watched = await api.watch('watched', { fieldSelector: 'reason=A*|B,search=pod-' })
    for (const [name, reason, pod] of [
      ['a', 'Also', 'pod-1'],
      ['b', 'B', 'pod-2'],
      ['c', 'C', 'pod-3'],
      ['d', 'B', 'other'],
      ['e', 'B', 'POD-4'],
    ] as const) {
      await create('watched', name, reason, pod)
    }
    await eventually('the last event', () => watched.received.length >= 3)
    assert.deepEqual(watched.received, ['ADDED a', 'ADDED b', 'ADDED e'])
  })

  test('summaries and histograms', async () => {
    const fieldSelector = 'reason=BackOff|Un*,name=checkout*'
    const { json } = await api.call({
      at: '',
      path: `${SUMMARIES}/namespaces/shop/eventsummaries`,
      query: { fieldSelector, groupBy: 'reason' },
    })
    const groups = json.items.map(({ group }: { group: { reason: string } }) => group.reason)
    assert.deepEqual(groups.sort(), ['BackOff', 'Unhealthy'])
    const histogram = await api.call({
      at: '',
      path: `${SUMMARIES}/eventhistograms`,
      query: { fieldSelector: `${fieldSelector},buckets=1,since=100w` },
    })
    assert.equal(histogram.json.items[0].counts[0].events, 6, histogram.text)
  })

  test('collection deletes', async () => {
    for (const name of ['a', 'b', 'c']) await create('gone', name, name.toUpperCase(), 'p')
    const query = { fieldSelector: 'reason=A|C*' }
    assert.equal((await api.call({ method: 'DELETE', at: 'gone', query })).status, 200)
    assert.equal(await namesIn('gone', ''), 'b')
  })

  test('what can match nothing is refused or has a warning, in every response', async () => {
    const query = { fieldSelector: 'reason=A,reason=B' }
    const warning = '299 - "reason=A,reason=B: no event has both; for either write reason=A|B"'
    const answers = [
      await api.call({ at: 'shop', query }),
      await api.call({ at: 'shop', query, method: 'DELETE' }),
      await api.call({ at: '', query, path: `${SUMMARIES}/eventsummaries` }),
      await api.call({ at: '', query, path: `${SUMMARIES}/eventhistograms` }),
      await api.call({ at: 'shop', query: { ...query, watch: true, timeoutSeconds: 1 } }),
    ]
    for (const { status, headers } of answers) {
      assert.deepEqual([status, headers['warning']], [200, warning])
    }
    for (const [fieldSelector, message] of [
      ['mentions=checkout', /such as Pod\/checkout, or a uid$/],
      ['controller=a,controller=b', /write controller=a\|b$/],
      ['reason in (A,B)', /write reason=A\|B$/],
      ['reason=A*B', /write \* only at the end, as in reason=A\*, or \\\* for an asterisk$/],
    ] as const) {
      const { status, json } = await api.call({ at: 'shop', query: { fieldSelector } })
      assert.equal(status, 400, fieldSelector)
      assert.match(json.message, message)
    }
  })
})
