import type { Chunk, Response } from '../../src/http/exchange.ts'
import type { WatchFrame } from './wire-event.ts'

/** The response of a watch, and the frames so far. */
export class Watched implements AsyncDisposable {
  readonly status: number
  readonly frames: WatchFrame[] = []
  /** Resolves at its normal end; rejects when it was cut. */
  readonly ended: Promise<void>
  readonly #end: AbortController

  constructor(response: Response, end: AbortController) {
    this.status = response.status
    this.#end = end
    this.ended = this.#read(response.body)
    this.ended.catch(() => {}) // Handled by the caller that awaits it.
  }

  get received(): readonly string[] {
    return this.frames.map(({ type, object }) => `${type} ${object.metadata.name}`)
  }

  /** Ends the watch as a client does that disconnects, or a server that shuts down. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    await this.ended.catch(() => {})
  }

  async #read(body: Response['body']): Promise<void> {
    let rest = ''
    for await (const chunk of body as AsyncIterable<Chunk>) {
      const lines = (rest + Buffer.from(chunk).toString()).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.frames.push(JSON.parse(line))
    }
  }
}
