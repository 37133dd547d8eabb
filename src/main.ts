#!/usr/bin/env node
import { versionLine } from './build-info.ts'
import { DevAccess } from './dev/access.ts'
import { DevEtcd, devBanner } from './dev/dev.ts'
import { createLog, type Log } from './lib/log.ts'
import { LogWriter } from './lib/log-writer.ts'
import { type DevOptions, devCommand, serverCommand } from './options/commands.ts'
import type { Options } from './options/options.ts'
import { type ParseResult, parseFlags } from './options/parse.ts'
import { Server } from './server.ts'
import { ForeignValueError } from './storage/prefix-check.ts'

/** What the process ends with; docs/operations.md explains each. */
const EXIT_OK = 0
const EXIT_FAILURE = 1
const EXIT_USAGE = 2
const EXIT_BUG = 70
/** What is in etcd is somebody else's: starting again does not help. */
const EXIT_FOREIGN_ETCD = 78

const NODE_MAJOR_MIN = 24
/** Supervisors signal a process and then its group: both together are one wish, not two. */
const SAME_SIGNAL_MS = 500
/** What the end leaves to files that are being written; more than any disk needs for a piece. */
const FILES_MS = 100

/**
 * Node cuts small buffers out of pages this large, and a page stays for as long as any of them does.
 * Each TLS connection keeps such a buffer, a few bytes long, for as long as it lives.
 */
Buffer.poolSize = 8 * 1024

const writer = new LogWriter()
const args = process.argv.slice(2)
const terminal = { columns: process.stdout.columns }

if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR_MIN) {
  end(
    EXIT_FAILURE,
    `Error: tidings needs Node ${NODE_MAJOR_MIN}; this is ${process.version}. "npm ci --include=dev" installs the right one: start it as node_modules/.bin/node\n`,
  )
}
if (args[0] === 'dev') await dev(parseFlags(devCommand, args.slice(1), terminal))
else await serve(parseFlags(serverCommand, args, terminal))

/** `tidings`: serves until told to stop. */
async function serve(parsed: ParseResult<Options>): Promise<void> {
  const options = optionsOrEnd(parsed, 'tidings')
  const log = startLog(options)
  await run(new Server(options, log, writer), log)
  end(EXIT_OK)
}

/** `tidings dev`: the same with an etcd of its own, which goes when the server goes. */
async function dev(parsed: ParseResult<DevOptions>): Promise<void> {
  const asked = optionsOrEnd(parsed, 'tidings dev')
  const log = startLog(asked)
  // Until the server is there, a signal simply ends us, and what `exit` cleans up is cleaned up.
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => end(EXIT_FAILURE))
  try {
    // biome-ignore lint/style/noProcessEnv: PATH is how programs are found, not a setting of ours.
    const etcd = await DevEtcd.start(asked.etcdBinary, process.env['PATH'] ?? '')
    const access = await DevAccess.create(etcd.folder)
    const options: Options = {
      ...asked,
      etcdServers: [etcd.endpoint],
      certDir: etcd.certDir,
      tokenAuthFile: access.tokenFile,
    }
    await run(new Server(options, log, writer), log, async (addresses) => {
      const { secure, certFile } = addresses
      const server = {
        url: `https://localhost:${secure.port}`,
        certFile,
        group: options.eventsGroup,
      }
      await access.writeKubeconfig(server.url, certFile)
      process.stdout.write(devBanner({ server, etcd, access }))
      etcd.onUnexpectedEnd(() => {
        endWithError(log, new Error('the private etcd has ended'))
      })
    })
    await etcd.stop()
    end(EXIT_OK)
  } catch (error) {
    endWithError(log, error)
  }
}

/** Starts the server and stops it at the first signal; a second one does not wait. */
async function run(
  server: Server,
  log: Log,
  onStarted: (addresses: Awaited<ReturnType<Server['start']>>) => Promise<void> = async () => {},
): Promise<void> {
  process.removeAllListeners('SIGTERM')
  process.removeAllListeners('SIGINT')
  const { promise: stopped, resolve, reject } = Promise.withResolvers<void>()
  let signalledAt: number | undefined
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signalledAt !== undefined) {
      if (performance.now() - signalledAt < SAME_SIGNAL_MS) return
      log.warn('Second signal, ending at once', { signal })
      end(EXIT_FAILURE)
    }
    signalledAt = performance.now()
    log.info('Signal received', { signal })
    server.stop().then(resolve, reject)
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  try {
    const started = server.start((error) => endWithError(log, error)).then(onStarted)
    // A start that waits for a file which never comes does not hold up the end either.
    await Promise.race([started, stopped])
    await stopped
  } catch (error) {
    endWithError(log, error)
  }
}

function startLog(options: Options): Log {
  const { loggingFormat: format, verbosity } = options
  const log = createLog({ format, verbosity, sink: writer, pid: process.pid })
  writer.onDropped((count) => log.warn('Log lines were lost, nobody read them', { count }))
  // Nothing in the server leaves an error uncaught on purpose: what arrives here has left the
  // process in a state nobody planned for, and a fresh start is the honest way out.
  process.on('uncaughtException', (err) => {
    log.error('Bug: uncaught error', { err, stack: err.stack })
    end(EXIT_BUG)
  })
  return log
}

function optionsOrEnd<O>(parsed: ParseResult<O>, name: string): O {
  switch (parsed.kind) {
    case 'run':
      return parsed.options
    case 'help':
      process.stdout.write(parsed.text)
      return end(EXIT_OK)
    case 'version':
      process.stdout.write(`${versionLine()}\n`)
      return end(EXIT_OK)
    case 'mistakes': {
      const mistakes = parsed.mistakes.map((mistake) => `Error: ${mistake}\n`).join('')
      return end(EXIT_USAGE, `${mistakes}Run "${name} --help" for all flags.\n`)
    }
  }
}

function endWithError(log: Log, err: unknown): never {
  log.error('Cannot go on', { err })
  end(err instanceof ForeignValueError ? EXIT_FOREIGN_ETCD : EXIT_FAILURE)
}

function end(code: number, message = ''): never {
  writer.write(message)
  writer.flushSync()
  // Nothing of ours may come between a signal and the end from here on.
  process.removeAllListeners('SIGTERM')
  process.removeAllListeners('SIGINT')
  // After all other listeners, who clean up.
  if (hasFilesUnderWay()) process.once('exit', endPastFiles)
  process.exit(code)
}

/** Names are looked up by the same threads as files are read and written. */
function hasFilesUnderWay(): boolean {
  const kinds = process.getActiveResourcesInfo()
  return kinds.some((kind) => /^(FSReq|FileHandleCloseReq|GetAddrInfoReq)/.test(kind))
}

/**
 * Ends the process whatever its files do. Exiting would wait for them, and a read on a dead mount may
 * never return. A signal would not do: the first process of a container cannot kill itself. Another
 * program in our place always ends us, or fails to start and aborts; so this one does no more than
 * exit, and nothing from outside, such as NODE_EXTRA_CA_CERTS on that mount, makes it do more.
 */
function endPastFiles(code: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FILES_MS)
  process.execve?.(process.execPath, ['node', '--eval', `process.exit(${code})`], {})
}
