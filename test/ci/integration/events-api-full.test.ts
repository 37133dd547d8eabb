import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { silentLog } from '../../../src/lib/log/log.ts'
import { type Answered, type Call, EventApiUnderTest } from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import { etcdctl, fillUp, makeRoom, startSmallEtcd } from '../../support/full-etcd.ts'
import { makeEvent } from '../../support/wire-event.ts'

const merge = { 'content-type': 'application/merge-patch+json' }
const annotations = { filling: 'x'.repeat(50_000) }

function creating(namespace: string, name: string): Call {
  const { metadata, ...event } = makeEvent(namespace, name)
  const body = { ...event, metadata: { ...metadata, annotations } }
  return { method: 'POST', at: namespace, body }
}

const puts: Readonly<Record<string, Call>> = {
  create: { method: 'POST', at: 'a', body: makeEvent('a', 'never') },
  patch: {
    method: 'PATCH',
    at: 'a/kept',
    headers: merge,
    body: { metadata: { labels: { x: 'y' } } },
  },
}

async function namesIn(api: EventApiUnderTest, at: string): Promise<ReadonlySet<string>> {
  const { json } = await api.call({ at })
  return new Set(json.items.map((item: Answered['json']) => item.metadata.name))
}

/** The response to each of many creates. */
class Ends {
  readonly #answers = new Map<string, Answered>()

  /** Creates from eight callers until each is rejected. */
  static async untilFull(api: EventApiUnderTest): Promise<Ends> {
    const ends = new Ends()
    await Promise.all(Array.from({ length: 8 }, (_, id) => ends.#create(api, id)))
    return ends
  }

  names(status: number): readonly string[] {
    return [...this.#answers].filter(([, end]) => end.status === status).map(([name]) => name)
  }

  answers(status: number): readonly Answered[] {
    return [...this.#answers.values()].filter((end) => end.status === status)
  }

  get size(): number {
    return this.#answers.size
  }

  async #create(api: EventApiUnderTest, id: number): Promise<void> {
    for (let number = 0; number < 500; number++) {
      const name = `e${id}-${number}`
      const answer = await api.call(creating('load', name))
      this.#answers.set(name, answer)
      if (answer.status === 503) return
    }
    assert.fail('etcd is not full')
  }
}

/**
 * No rejected create was applied, no acknowledged create is missing, and few have an unknown
 * result.
 */
function checkHonesty(ends: Ends, there: ReadonlySet<string>): string {
  const [made, refused, doubtful] = [201, 503, 504].map((status) => ends.names(status))
  assert.ok(made !== undefined && refused !== undefined && doubtful !== undefined)
  assert.equal(made.length + refused.length + doubtful.length, ends.size)
  assert.deepEqual(
    made.filter((name) => !there.has(name)),
    [],
  )
  assert.deepEqual(
    refused.filter((name) => there.has(name)),
    [],
  )
  // One for each caller: its create was in flight when etcd became full.
  assert.ok(doubtful.length > 0 && doubtful.length <= 8, `${doubtful.length} in doubt`)
  for (const { headers, json } of ends.answers(504)) {
    assert.equal(headers['retry-after'], undefined)
    assert.equal(
      json.message,
      'etcd is full (its space quota is exceeded); the write may have been applied: read the event before you retry',
    )
  }
  const happened = doubtful.filter((name) => there.has(name)).length
  return `${made.length} made, ${refused.length} refused, ${doubtful.length} in doubt (${happened} made)`
}

async function checkRefusals(api: EventApiUnderTest): Promise<void> {
  for (const [verb, call] of Object.entries(puts)) {
    const { status, headers, json } = await api.call(call)
    assert.deepEqual([status, headers['retry-after']], [503, '1'], verb)
    assert.equal(json.reason, 'ServiceUnavailable')
    assert.equal(
      json.message,
      'etcd is full (its space quota is exceeded) and accepts only deletes; nothing was done',
    )
  }
}

async function checkAllElse(api: EventApiUnderTest, bystander: EventApiUnderTest): Promise<void> {
  assert.equal((await api.call({ at: 'a/kept' })).status, 200)
  assert.equal((await api.call({ method: 'DELETE', at: 'a/gone' })).status, 200)
  assert.equal((await bystander.call({ method: 'DELETE', at: 'a/other' })).status, 200)
  assert.deepEqual(await namesIn(bystander, 'a'), new Set(['kept']))
  const dryRun = { ...creating('a', 'dry'), query: { dryRun: 'All' } }
  assert.equal((await api.call(dryRun)).status, 201)
  const [deleted] = await Promise.all([
    api.call({ method: 'DELETE', at: 'load' }),
    // Concurrent creates do not delay the collection delete.
    ...Array.from({ length: 20 }, (_, at) => api.call(creating('a', `beside-${at}`))),
  ])
  assert.equal(deleted.status, 200)
  assert.deepEqual(await namesIn(api, 'load'), new Set())
  assert.deepEqual(await namesIn(api, 'a'), new Set(['kept']))
}

describe('the events API while etcd is full', () => {
  for (const members of [1, 3]) {
    test(`with ${members} members: puts are rejected with a certain result, all else works, and puts work once space is freed`, async (context) => {
      await using etcd = await startSmallEtcd(members)
      const lines: string[] = []
      const note = (msg: string): void => void lines.push(msg)
      await using api = await EventApiUnderTest.start(etcd.endpoints, {
        availabilityLog: { ...silentLog, error: note, info: note },
      })
      await using bystander = await EventApiUnderTest.start(etcd.endpoints.toReversed())
      for (const name of ['kept', 'gone', 'other']) {
        assert.equal((await api.call(creating('a', name))).status, 201)
      }
      await using watched = await api.watchFromNow('')
      const ends = await Ends.untilFull(api)
      const there = await namesIn(api, 'load')
      context.diagnostic(checkHonesty(ends, there))
      await eventually(
        'a replica that writes nothing detects it too',
        () => bystander.quotaAlarm.isFull,
        7_000,
      )
      await checkRefusals(api)
      await checkRefusals(bystander)
      await checkAllElse(api, bystander)
      await eventually('the watch has received all deletes', () =>
        ['other', ...there].every((name) => watched.received.includes(`DELETED ${name}`)),
      )
      assert.equal(lines.filter((line) => line.startsWith('etcd is full')).length, 1)

      // The alarm is disarmed without freeing space, so etcd is soon full again. From 3.6 on it charges a
      // transaction of eight events with all of them, so that one of them may still fit.
      await etcdctl(etcd, 'alarm disarm')
      await eventually('that is noticed', () => !api.quotaAlarm.isFull)
      context.diagnostic(checkHonesty(await Ends.untilFull(api), await namesIn(api, 'load')))
      await checkRefusals(api)

      await makeRoom(etcd, api.client)
      for (const [name, each] of Object.entries({ back: api, 'back-too': bystander })) {
        await eventually('room is noticed', () => !each.quotaAlarm.isFull)
        assert.equal((await each.call(creating('a', name))).status, 201)
      }
      assert.ok(lines.includes('etcd accepts writes again'))
    })
  }

  test('a replica that starts with a full etcd detects it without a write', async () => {
    await using etcd = await startSmallEtcd()
    await using first = await EventApiUnderTest.start(etcd.endpoints)
    assert.equal((await first.call(creating('a', 'kept'))).status, 201)
    await fillUp(first.client)
    await using second = await EventApiUnderTest.start(etcd.endpoints)
    await eventually('it is known', () => second.quotaAlarm.isFull, 3_000)
    await checkRefusals(second)
  })
})
