import { setTimeout as sleep } from 'node:timers/promises'
import { openClient, PROTOCOLS } from './http-client.ts'
import { Stopwatch } from './stopwatch.ts'

/** The results of a well-behaved client while others misbehave. */
export interface BystanderReport {
  readonly answers: number
  readonly failures: readonly unknown[]
  readonly slowestMs: number
}

const PAUSE_MS = 20

/** Sends requests on one connection of each protocol, until it is stopped. */
export async function startBystander(port: number): Promise<{ stop(): Promise<BystanderReport> }> {
  const clients = await Promise.all(PROTOCOLS.map((protocol) => openClient(protocol, port)))
  const failures: unknown[] = []
  let answers = 0
  let slowestMs = 0
  let isStopped = false
  const loops = clients.map(async (client) => {
    while (!isStopped) {
      const watch = new Stopwatch()
      try {
        const { status } = await client.request({ path: '/bystander' })
        if (status !== 200) failures.push(status)
        answers += 1
      } catch (error) {
        failures.push(error)
        return
      }
      slowestMs = Math.max(slowestMs, watch.ms)
      await sleep(PAUSE_MS)
    }
  })
  return {
    stop: async () => {
      isStopped = true
      await Promise.all(loops)
      for (const client of clients) client[Symbol.dispose]()
      return { answers, failures, slowestMs: Math.round(slowestMs) }
    },
  }
}
