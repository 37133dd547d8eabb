/** "Who is flooding us?" is one command, which knows it within seconds. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { findKubectl, OLDEST, RECORDED_WITH } from '../../nightly/kubectl/kubectl.ts'
import type { EventClient } from '../../support/event-client.ts'
import { eventually } from '../../support/eventually.ts'
import { Kubectl } from '../../support/kubectl.ts'
import { inParallel } from '../../support/load.ts'
import { ADMIN_TOKEN, Replicas } from '../../support/replicas.ts'
import { makeEvent, type WireEvent } from '../../support/wire-event.ts'

const CONTROLLERS = 200
/** Stored before the flood, so that the flood does not have the most events. */
const STORED = 3_000
const FLOOD = 'example.com/loop'
const FLOOD_AT_ONCE = 4
const RANKED_MS_MAX = 5_000

function normalEvent(name: string, index: number): WireEvent {
  return makeEvent(`shop-${index % 50}`, name, {
    reportingController: `example.com/normal-${index % CONTROLLERS}`,
    reason: `Reason${index % 40}`,
  })
}

/** Runs until the signal aborts. */
async function normalWrites(client: EventClient, signal: AbortSignal): Promise<void> {
  for (let index = 0; !signal.aborted; index++) {
    await client.create(normalEvent(`normal-${index}`, index))
    await sleep(20)
  }
}

async function flood(client: EventClient, signal: AbortSignal): Promise<void> {
  const one = async (writer: number): Promise<void> => {
    for (let index = 0; !signal.aborted; index++) {
      const event = { reportingController: FLOOD, reason: 'Looping' }
      await client.create(makeEvent('bad', `flood-${writer}-${index}`, event))
      await sleep(5)
    }
  }
  await Promise.all(Array.from({ length: FLOOD_AT_ONCE }, (_, writer) => one(writer)))
}

/** Work that ends, without an error, at the end of the scope. */
class Background implements AsyncDisposable {
  readonly #ending = new AbortController()
  readonly #work: Promise<void>[] = []

  run(work: (signal: AbortSignal) => Promise<void>): void {
    this.#work.push(work(this.#ending.signal))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await Promise.all(this.#work)
  }
}

const version = [RECORDED_WITH, OLDEST].find((each) => findKubectl(each) !== undefined)

describe('a flood', { timeout: 180_000, skip: version === undefined && 'no kubectl' }, () => {
  test('of one controller among 200 is ranked first within 5 s, on a replica that it does not write to', async (t) => {
    await using replicas = await Replicas.start(2)
    using writer = await replicas.client(0)
    const program = findKubectl(version ?? '') ?? ''
    const kubectl = await Kubectl.as(ADMIN_TOKEN, replicas.server(1), program)
    const summary = async (...args: readonly string[]): Promise<readonly string[][]> => {
      const command = ['get', 'eventsummaries', '-A', '--no-headers', ...args]
      const { code, stdout, stderr } = await kubectl.run(...command)
      assert.equal(code, 0, stderr)
      return stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.trim().split(/ {2,}/))
    }
    await inParallel(STORED, 16, async (index) => {
      await writer.create(normalEvent(`stored-${index}`, index))
    })
    await using background = new Background()
    background.run((signal) => normalWrites(writer, signal))
    await sleep(1_000)
    const byRate = '--field-selector=groupBy=controller,order=rate'
    assert.ok(!(await summary(byRate)).flat().includes(FLOOD))
    const begunAt = performance.now()
    background.run((signal) => flood(writer, signal))
    const ranked = async (value: string, ...args: readonly string[]): Promise<number> => {
      const isFirst = async () => (await summary(...args))[0]?.includes(value) === true
      await eventually(`${value} is first`, isFirst, RANKED_MS_MAX)
      return Math.round(performance.now() - begunAt)
    }
    t.diagnostic(`ranked first after ${await ranked(FLOOD, byRate)} ms`)
    await ranked('bad', '--field-selector=groupBy=namespace,order=rate')
    await ranked('Looping', '--field-selector=groupBy=reason,order=rate')
    // Only the replica that they write to knows users.
    const other = await Kubectl.as(ADMIN_TOKEN, replicas.server(0), program)
    const users = await other.run('get', 'evsum', '-A', '--field-selector=groupBy=user')
    assert.match(users.stdout, /\badmin\b.*\/min/)
    const inOne = await other.run('get', 'evsum', '-n', 'bad', '--field-selector=groupBy=user')
    assert.match(inOne.stderr, /all namespaces only/)
    const ofOne = await other.run(
      ...['get', 'evsum', '-n', 'bad', '--field-selector=groupBy=controller'],
    )
    assert.match(ofOne.stdout, new RegExp(FLOOD))
    assert.doesNotMatch(ofOne.stdout, /\/min/)
  })
})
