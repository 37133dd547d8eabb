import { setTimeout as sleep } from 'node:timers/promises'
import { type LoadOutcome, runLoad } from '../support/h2load.ts'
import { Readers } from '../support/readers.ts'
import type { Side, TidingsSide } from './sides.ts'
import type { Sample } from './turns.ts'
import { cpuOf, createIn, eventsPath, ONE, responseBytes, type Work } from './work.ts'

const WATCHERS = { sessions: 8, streamsPerSession: 50 }
const PUBLISHED = 200
const FRAMES = PUBLISHED * WATCHERS.sessions * WATCHERS.streamsPerSession
/** The pause in which new watches receive their initial events. */
const SETTLE_MS = 200
const AROUND = '{"type":"ADDED","object":}\n'

/**
 * What a frame costs: publishing with watchers, less publishing without, by the number of frames.
 * One publication follows the other, so that none shares a write with another on either side.
 */
export async function frameWork(ours: TidingsSide): Promise<Work> {
  const frameBytes = (await responseBytes(ours, createIn('created'))) + AROUND.length
  let turn = 0
  const publish = (side: Side, namespace: string): Promise<LoadOutcome> =>
    runLoad({
      url: `${side.url}${side.isBare === true ? `/publish/${frameBytes}` : eventsPath(namespace)}`,
      headers: side.headers,
      amount: { requests: PUBLISHED },
      ...ONE,
      body: createIn(namespace).body,
    })
  const watched = async <T>(
    side: Side,
    run: (publishToAll: () => Promise<LoadOutcome>) => Promise<T>,
  ): Promise<T> => {
    // Each time another one, so that a watch begins with nothing.
    const namespace = `watched-${turn++}`
    const path = side.isBare === true ? '/watch' : `${eventsPath(namespace)}?watch=true`
    await using readers = await Readers.open({
      url: side.url,
      path,
      headers: side.headers,
      ...WATCHERS,
    })
    await sleep(SETTLE_MS)
    return await run(async () => {
      const received = readers.received(FRAMES)
      const outcome = await publish(side, namespace)
      await received
      return outcome
    })
  }
  const measure = async (side: Side): Promise<Sample> => {
    const alone = await cpuOf(side, () => publish(side, `alone-${turn++}`))
    const all = await watched(side, (publishToAll) => cpuOf(side, publishToAll))
    return { micros: ((all.seconds - alone.seconds) * 1e6) / FRAMES }
  }
  const load = (side: Side): Promise<LoadOutcome> => watched(side, (publishToAll) => publishToAll())
  return { name: 'watch frame', ratioMax: 1.3, units: FRAMES, load, measure }
}
