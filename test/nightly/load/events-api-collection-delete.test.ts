import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import { type Answered, type EventApiUnderTest, withEventApi } from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import { again } from '../../support/load.ts'
import { makeEvent, type WireEvent } from '../../support/wire-event.ts'

const finalizer = 'example.com/hold'

describe('collection delete', () => {
  let api: EventApiUnderTest

  withEventApi({
    begin: (started) => {
      api = started
    },
  })

  async function names(namespace: string): Promise<readonly string[]> {
    const { json } = await api.call({ at: namespace })
    return json.items.map(({ metadata }: WireEvent) => metadata.name)
  }

  function deleteAll(namespace: string, query: Record<string, string> = {}): Promise<Answered> {
    return api.call({ method: 'DELETE', at: namespace, query })
  }

  test('a collection delete deletes all events once, and none of another namespace', async () => {
    const count = 5_000
    await Promise.all([
      api.fill('cleared', count),
      api.fill('cleared-not', 20),
      api.fill('clear', 20),
    ])
    await using watched = await api.watchFromNow('cleared')
    const done = await deleteAll('cleared')
    assert.equal(done.status, 200)
    assert.equal(done.json.kind, 'Status')
    assert.equal(done.json.status, 'Success')
    assert.deepEqual(done.json.metadata, {})
    assert.deepEqual(await names('cleared'), [])
    await eventually('all are received', () => watched.frames.length >= count)
    assert.equal(watched.frames.length, count)
    assert.equal(new Set(watched.received).size, count)
    assert.ok(watched.received.every((change) => change.startsWith('DELETED ')))
    assert.equal((await names('cleared-not')).length, 20)
    assert.equal((await names('clear')).length, 20)
  })

  test('a collection delete with a limit returns a continue token, and repeating it deletes the rest', async () => {
    await api.fill('pieces', 1_100)
    let token = ''
    const left: number[] = []
    do {
      const { status, json } = await deleteAll('pieces', { limit: '500', continue: token })
      assert.equal(status, 200)
      assert.equal(json.status, 'Success')
      token = json.metadata.continue ?? ''
      left.push((await names('pieces')).length)
    } while (token !== '')
    assert.deepEqual(left, [600, 100, 0])
    await api.fill('pieces', 30)
    // The token is not needed: the remaining events are then the first ones.
    for (const remaining of [20, 10, 0]) {
      await deleteAll('pieces', { limit: '10' })
      assert.equal((await names('pieces')).length, remaining)
    }
  })

  test('a limit above the maximum deletes everything', async () => {
    await api.fill('limitless', 600)
    const { json } = await deleteAll('limitless', { limit: '9223372036854775807' })
    assert.deepEqual(json.metadata, {})
    assert.deepEqual(await names('limitless'), [])
  })

  test('a large collection delete lets other writes through', async () => {
    await api.fill('great', 10_000)
    const codes: number[] = []
    const creating = again(async (round) => {
      const body = makeEvent('beside', `e-${round}`)
      codes.push((await api.call({ method: 'POST', at: 'beside', body })).status)
      await tick()
    })
    const done = await deleteAll('great', { limit: '10000' })
    await creating.stop()
    assert.equal(done.status, 200)
    assert.deepEqual(await names('great'), [])
    assert.ok(codes.length > 20, `only ${codes.length} events were written meanwhile`)
    assert.deepEqual(new Set(codes), new Set([201]))
  })

  test('selectors choose the events to delete, and a dry run deletes nothing', async () => {
    await api.fill('chosen', 10, () => ({ labels: { of: 'one' } }))
    await api.call({ method: 'POST', at: 'chosen', body: makeEvent('chosen', 'other') })
    await deleteAll('chosen', { labelSelector: 'of=one', dryRun: 'All' })
    assert.equal((await names('chosen')).length, 11)
    await deleteAll('chosen', { labelSelector: 'of=one', fieldSelector: 'metadata.name!=e-000003' })
    assert.deepEqual(await names('chosen'), ['e-000003', 'other'])
    await deleteAll('chosen', { fieldSelector: 'metadata.namespace=elsewhere' })
    assert.deepEqual(await names('chosen'), ['e-000003', 'other'])
  })

  test('empty preconditions and an empty propagation policy delete nothing', async () => {
    await api.fill('unfilled', 3)
    const cases: readonly (readonly [number, object])[] = [
      [409, { preconditions: { uid: '' } }],
      [409, { preconditions: { resourceVersion: '' } }],
      [422, { propagationPolicy: '' }],
    ]
    for (const [status, body] of cases) {
      const refused = await api.call({ method: 'DELETE', at: 'unfilled', body })
      assert.equal(refused.status, status, JSON.stringify(body))
    }
    assert.equal((await names('unfilled')).length, 3)
  })

  test('events with finalizers are marked and stay; the others are deleted', async () => {
    await api.fill('held', 5)
    const event = makeEvent('held', 'kept')
    const body = { ...event, metadata: { ...event.metadata, finalizers: [finalizer] } }
    await api.call({ method: 'POST', at: 'held', body })
    assert.equal((await deleteAll('held')).status, 200)
    const { json } = await api.call({ at: 'held' })
    assert.deepEqual(
      json.items.map(({ metadata }: Answered['json']) => [
        metadata.name,
        typeof metadata.deletionTimestamp,
      ]),
      [['kept', 'string']],
    )
    assert.equal((await deleteAll('held')).status, 200)
  })

  test('events created meanwhile stay, even under names that have been deleted', async () => {
    const count = 2_000
    await api.fill('busy', count)
    const created: string[] = []
    const post = async (name: string): Promise<number> =>
      (await api.call({ method: 'POST', at: 'busy', body: makeEvent('busy', name) })).status
    // Creates from the first name on, as soon as the delete has passed it.
    const following = again(async () => {
      const name = nameOf(created.length)
      if ((await post(name)) === 201) created.push(name)
    })
    // Replaces from the last name on, before the delete reaches it.
    const replaced: string[] = []
    const meeting = again(async (round) => {
      const name = nameOf(count - 1 - round)
      const { status } = await api.call({ method: 'DELETE', at: `busy/${name}` })
      if (status === 200 && (await post(name)) === 201) replaced.push(name)
    })
    await eventually('some are there', () => replaced.length > 3)
    assert.equal(created.length, 0)
    // Events that existed when the delete began may go, and it takes a moment to begin.
    const early = replaced.length + 5
    // Two deletes, so that one passes names that the other has already deleted.
    const answers = await Promise.all([deleteAll('busy'), deleteAll('busy')])
    await Promise.all([following.stop(), meeting.stop()])
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200],
    )
    assert.ok(created.length > 3, `${created.length} names were used again`)
    assert.ok(replaced.length > early, `${replaced.length} were replaced`)
    const left = await names('busy')
    assert.deepEqual(
      [...created, ...replaced.slice(early)].filter((name) => !left.includes(name)),
      [],
    )
  })

  test('an event relabelled meanwhile is not deleted when the selector no longer matches', async () => {
    const count = 2_000
    await api.fill('relabelled', count, () => ({ labels: { of: 'one' } }))
    const changed: string[] = []
    const headers = { 'content-type': 'application/merge-patch+json' }
    const deleting = deleteAll('relabelled', { labelSelector: 'of=one' })
    const changing = again(async (round) => {
      const name = nameOf(count - 1 - round)
      const at = `relabelled/${name}`
      const body = { metadata: { labels: { of: 'other' } } }
      if ((await api.call({ method: 'PATCH', at, headers, body })).status === 200) {
        changed.push(name)
      }
    })
    assert.equal((await deleting).status, 200)
    await changing.stop()
    assert.ok(changed.length > 3)
    assert.deepEqual(await names('relabelled'), changed.toReversed())
  })

  test('a collection delete continues after its client disconnects', async () => {
    await api.fill('abandoned', 2_000)
    const client = new AbortController()
    const deleting = api.call({ method: 'DELETE', at: 'abandoned', signal: client.signal })
    await eventually('it has begun', async () => (await names('abandoned')).length < 2_000)
    assert.notEqual((await names('abandoned')).length, 0)
    client.abort()
    await deleting
    assert.deepEqual(await names('abandoned'), [])
  })

  test('many collection deletes at once let other writes through', async () => {
    const spaces = Array.from({ length: 24 }, (_, index) => `crowd-${index}`)
    for (const space of spaces) await api.fill(space, 500)
    const codes: number[] = []
    const creating = again(async (round) => {
      const body = makeEvent('beside-many', `e-${round}`)
      codes.push((await api.call({ method: 'POST', at: 'beside-many', body })).status)
    })
    const answers = await Promise.all(spaces.map((space) => deleteAll(space)))
    await creating.stop()
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
    assert.deepEqual(new Set(codes), new Set([201]))
    // At most a few hundred of the 12,000 deletes are queued before another write.
    assert.ok(codes.length > 30, `only ${codes.length} events were written meanwhile`)
  })

  test('large events do not block the event loop for long', async () => {
    const pairs = Array.from({ length: 2_500 }, (_, index) => [
      `example.com/label-${index}`,
      'some value',
    ])
    const labels = Object.fromEntries(pairs)
    const longestTick = async (): Promise<number> => {
      await api.fill('large', 200, () => ({ labels }))
      let longest = 0
      let last = process.threadCpuUsage()
      const measuring = again(async () => {
        await tick()
        const { user, system } = process.threadCpuUsage(last)
        last = process.threadCpuUsage()
        longest = Math.max(longest, (user + system) / 1000)
      })
      assert.equal((await deleteAll('large')).status, 200)
      await measuring.stop()
      return longest
    }
    // CPU time of this thread, since other processes use the machine too; the least of a few
    // attempts, since on a busy machine the same work takes more of it.
    let least = Number.POSITIVE_INFINITY
    for (let attempt = 0; least >= 50 && attempt < 3; attempt++) {
      least = Math.min(least, await longestTick())
    }
    assert.ok(least < 50, `one event-loop tick took ${least} ms`)
  })

  test('two collection deletes of one namespace both succeed', async () => {
    await api.fill('twice', 1_500)
    const answers = await Promise.all([deleteAll('twice'), deleteAll('twice')])
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200],
    )
    assert.deepEqual(await names('twice'), [])
  })
})

/** The names that `fill` gives. */
function nameOf(index: number): string {
  return `e-${String(index).padStart(6, '0')}`
}
