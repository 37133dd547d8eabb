import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Tidings } from './tidings.ts'

/** For the allocator to give back what the collection has freed. */
const SETTLE_MS = 500

/**
 * What a server holds in memory once its garbage is gone, in KiB. Garbage can be as much again, and
 * says nothing about what things cost. Asks through the inspector, which a signal opens; only one
 * program of a machine can have it open at a time.
 */
export async function residentKib(server: Tidings): Promise<number> {
  const { pid } = server.process
  await collectGarbage(server)
  await sleep(SETTLE_MS)
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1])
}

async function collectGarbage(server: Tidings): Promise<void> {
  const prefix = 'Debugger listening on '
  server.kill('SIGUSR1')
  const deadline = performance.now() + 5000
  let url: string | undefined
  while (url === undefined) {
    if (performance.now() > deadline) throw new Error('no inspector: is its port taken?')
    await sleep(20)
    url = server.log.find(({ msg }) => msg.startsWith(prefix))?.msg.slice(prefix.length)
  }
  const socket = new WebSocket(url)
  await once(socket, 'open')
  // Twice: what the first finds dead may let go of more.
  for (const id of [1, 2]) {
    socket.send(JSON.stringify({ id, method: 'HeapProfiler.collectGarbage' }))
    await once(socket, 'message')
  }
  socket.close()
}
