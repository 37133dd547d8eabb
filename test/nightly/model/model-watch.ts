/** A watch with a random selector, and the frames that it must get by the plain model. */
import type { EventApiUnderTest } from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import type { Watched } from '../../support/watched.ts'
import type { Change, History } from './history.ts'
import { callOf, type MadeQuery } from './made-queries.ts'
import { matches } from './plain-query.ts'

export class ModelWatch implements AsyncDisposable {
  readonly query: MadeQuery
  readonly #watched: Watched
  readonly #from: number

  static async open(api: EventApiUnderTest, query: MadeQuery, from: number): Promise<ModelWatch> {
    const call = callOf(query, { resourceVersion: from })
    return new ModelWatch(query, await api.watch('', call.query, call), from)
  }

  private constructor(query: MadeQuery, watched: Watched, from: number) {
    this.query = query
    this.#watched = watched
    this.#from = from
  }

  /** What is wrong with the frames up to this version; undefined when they are right. */
  async faultOf(
    history: History,
    { to, nowMs }: { readonly to: number; readonly nowMs: number },
  ): Promise<string | undefined> {
    const changes = await history.changes(this.#from, to)
    const expected = changes.flatMap((change) => frameOf(change, this.query, nowMs))
    await eventually(
      'the frames of a watch',
      () => this.#frames(to).length >= expected.length,
    ).catch(
      () => {}, // The comparison says what is missing.
    )
    const frames = this.#frames(to)
    const at = expected.findIndex((frame, index) => frame !== frames[index])
    if (at === -1 && frames.length === expected.length) return undefined
    const place = at === -1 ? expected.length : at
    return (
      `watch from ${this.#from} to ${to}: ${expected.length} frames expected, ` +
      `${frames.length} read; frame ${place} is ${frames[place]}, expected ${expected[place]}`
    )
  }

  #frames(to: number): readonly string[] {
    return this.#watched.frames
      .map(({ type, object }) => ({ type, version: Number(object.metadata.resourceVersion) }))
      .filter(({ version }) => version <= to)
      .map(({ type, version }) => `${type} ${version}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#watched[Symbol.asyncDispose]()
  }
}

/** Returns at most one frame: an event that starts to match is added, one that stops to match is deleted. */
function frameOf(
  { version, before, after }: Change,
  query: MadeQuery,
  nowMs: number,
): readonly string[] {
  const did = before !== undefined && matches(before, query, nowMs)
  const does = after !== undefined && matches(after, query, nowMs)
  if (!did && !does) return []
  const type = does ? (did ? 'MODIFIED' : 'ADDED') : 'DELETED'
  return [`${type} ${version}`]
}
