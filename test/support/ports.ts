/**
 * Ports for programs that need a given one. A port from the kernel could be taken between the moment
 * it was free and the start of the program, or while the program restarts: by another test, or as the
 * local port of any connection. These are below the range that the kernel assigns from, and a
 * UDP socket with the same number marks each as taken, for all tests on this machine, until this process
 * ends.
 */
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { EtcdPorts } from '../../src/dev/etcd-process.ts'

const HOST = '127.0.0.1'
const FIRST = 10_000
/** Linux assigns from 32,768 on. */
const LAST = 32_000

export async function reservePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST)
    if ((await isMarked(port)) && (await isFree(port))) return port
  }
}

export async function reserveEtcdPorts(): Promise<EtcdPorts> {
  const [client, peer, metrics] = [await reservePort(), await reservePort(), await reservePort()]
  return { client, peer, metrics }
}

/** False if another process, or an earlier call, has the port. */
async function isMarked(port: number): Promise<boolean> {
  const mark = createSocket('udp4').bind({ port, address: HOST, exclusive: true })
  try {
    await once(mark, 'listening')
    mark.unref()
    return true
  } catch {
    return false
  }
}

/** False if a program other than a test listens there. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, HOST)
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
