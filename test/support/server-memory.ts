import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Tidings } from './tidings.ts'

/** Time for the allocator to return the memory that the collection has freed. */
const SETTLE_MS = 500

/**
 * The resident memory of a server after a garbage collection, in KiB. Garbage can be as much again,
 * and says nothing about the cost of what is kept. Uses the inspector, which a signal opens; only
 * one process of a machine can have it open at a time.
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
  // Twice: objects that the first collection finalizes may release more.
  for (const id of [1, 2]) {
    socket.send(JSON.stringify({ id, method: 'HeapProfiler.collectGarbage' }))
    await once(socket, 'message')
  }
  socket.close()
}
