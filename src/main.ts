#!/usr/bin/env node
import { DevCredentials } from './dev/credentials.ts'
import { DevEtcd, devBanner } from './dev/dev.ts'
import { devMirror } from './dev/mirror.ts'
import { OneTimeCode } from './dev/one-time-code.ts'
import { pause } from './lib/abort.ts'
import { monotonicClock } from './lib/clock.ts'
import { createLog, type Log, type RootLog } from './lib/log/log.ts'
import { LogWriter } from './lib/log/log-writer.ts'
import { DEV_PORT, type DevOptions, devCommand, serverCommand } from './options/commands.ts'
import { type HistoryCommand, parseHistory } from './options/history-commands.ts'
import type { Options } from './options/options.ts'
import { type ParseResult, parseFlags } from './options/parse.ts'
import { versionLine } from './server/build-info.ts'
import { runHistoryCommand } from './server/history-command.ts'
import { Server } from './server/server.ts'
import { ForeignValueError } from './storage/etcd/prefix-check.ts'

/** Exit codes; docs/reference/process.md explains each. */
const EXIT_OK = 0
const EXIT_FAILURE = 1
const EXIT_USAGE = 2
const EXIT_BUG = 70
/** etcd has values of another program under our prefix, so a restart does not help. */
const EXIT_FOREIGN_ETCD = 78

const NODE_MAJOR_MIN = 24
/** How long `tidings dev` waits for its server before it prints commands. */
const SYNC_MS_MAX = 10_000
const SYNC_POLL_MS = 20
/** Supervisors signal a process and then its group: signals within this time count as one. */
const SAME_SIGNAL_MS = 500
/** How long the exit waits for file writes in progress; a disk takes less for one write. */
const FILES_MS = 100

/**
 * Node allocates small buffers from pools of this size, and a pool stays in memory as long as any of
 * its buffers. Each TLS connection retains such a buffer of a few bytes.
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
else if (args[0] === 'history') await history(parseHistory(args.slice(1), terminal))
else await serve(parseFlags(serverCommand, args, terminal))

/** `tidings`: serves until a signal stops it. */
async function serve(parsed: ParseResult<Options>): Promise<void> {
  const options = optionsOrEnd(parsed, 'tidings')
  const log = startLog(options)
  await run(new Server(options, log, writer), log)
  end(EXIT_OK)
}

/** `tidings dev`: also runs a private etcd, which is stopped after the server. */
async function dev(parsed: ParseResult<DevOptions>): Promise<void> {
  const devOptions = optionsOrEnd(parsed, 'tidings dev')
  const log = startLog(devOptions)
  // Until the server is started, a signal exits immediately; the `exit` listeners still clean up.
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => end(EXIT_FAILURE))
  try {
    const { etcdBinary: binary, dataDir } = devOptions
    // biome-ignore lint/style/noProcessEnv: PATH finds programs and is not a setting of ours.
    const { PATH: searchPath = '', KUBECONFIG: userFiles } = process.env
    const etcd = await DevEtcd.start({ binary, searchPath, dataDir })
    const credentials = await DevCredentials.create(etcd.folder)
    const mirrored = devOptions.mirror
      ? await devMirror(devOptions, { folder: etcd.folder, userFiles, log })
      : undefined
    const { securePort: givenPort } = devOptions
    const securePort = givenPort === 0 ? (credentials.lastPort ?? DEV_PORT) : givenPort
    const options: Options = {
      ...devOptions,
      ...mirrored?.options,
      securePort,
      etcdServers: [etcd.endpoint],
      etcdCaFile: etcd.tls.cert,
      etcdCertFile: etcd.tls.cert,
      etcdKeyFile: etcd.tls.key,
      certDir: etcd.certDir,
      tokenAuthFile: credentials.tokenFile,
    }
    const signIn = new OneTimeCode(credentials.token, monotonicClock)
    const started = new Server(options, log, writer, { signIn, mayChangePort: givenPort === 0 })
    await run(started, log, async (addresses) => {
      const { secure, certFile } = addresses
      // The printed commands should work immediately.
      for (
        let waitedMs = 0;
        !started.isSynced && waitedMs < SYNC_MS_MAX;
        waitedMs += SYNC_POLL_MS
      ) {
        await pause(SYNC_POLL_MS)
      }
      const server = {
        url: `https://localhost:${secure.port}`,
        certFile,
        group: options.eventsGroup,
        takenPort: secure.port === securePort ? undefined : securePort,
      }
      await credentials.writeKubeconfig(server.url, certFile)
      const code = options.ui ? signIn.code : undefined
      const parts = { server, etcd, credentials, code, mirrored: mirrored?.context }
      process.stdout.write(devBanner(parts))
      etcd.onUnexpectedEnd(() => {
        endWithError(log, new Error('the private etcd exited unexpectedly'))
      })
    })
    mirrored?.context.stop()
    await etcd.stop()
    end(EXIT_OK)
  } catch (error) {
    endWithError(log, error)
  }
}

/** `tidings history …`: works on the archive, and ends with 1 if something is wrong with it. */
async function history(parsed: ParseResult<HistoryCommand>): Promise<void> {
  const verb = /^[a-z]+$/.test(args[1] ?? '') ? ` ${args[1]}` : ''
  const command = optionsOrEnd(parsed, `tidings history${verb}`)
  const log = startLog(command.options)
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort())
  const print = (line: string): void => void process.stdout.write(`${line}\n`)
  try {
    const isWell = await runHistoryCommand(command, { log, signal: stop.signal, print })
    end(isWell ? EXIT_OK : EXIT_FAILURE)
  } catch (err) {
    log.error('Command failed, exiting', { err })
    end(EXIT_FAILURE)
  }
}

/** Starts the server and stops it on the first signal; a second signal exits immediately. */
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
      log.warn('Second signal received, exiting immediately', { signal })
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
    // A start that waits for a file forever must not delay the stop.
    await Promise.race([started, stopped])
    await stopped
  } catch (error) {
    endWithError(log, error)
  }
}

function startLog(options: Pick<Options, 'loggingFormat' | 'verbosity'>): RootLog {
  const { loggingFormat: format, verbosity } = options
  const log = createLog({ format, verbosity, sink: writer, pid: process.pid })
  writer.onDropped((count) => {
    log.warn('Log lines were dropped because standard error was blocked', { count })
  })
  // An error that arrives here is a bug. The state of the process is undefined, so only a restart is
  // safe.
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
  log.error('Server failed, exiting', { err })
  end(err instanceof ForeignValueError ? EXIT_FOREIGN_ETCD : EXIT_FAILURE)
}

function end(code: number, message = ''): never {
  writer.write(message)
  writer.flushSync()
  // From here on a signal must end the process, without our handlers.
  process.removeAllListeners('SIGTERM')
  process.removeAllListeners('SIGINT')
  // Added last, so that it runs after the `exit` listeners that clean up.
  if (hasFileOperations()) process.once('exit', exitDespiteFiles)
  process.exit(code)
}

/** Name lookups count too: they use the same thread pool as file operations. */
function hasFileOperations(): boolean {
  const kinds = process.getActiveResourcesInfo()
  return kinds.some((kind) => /^(FSReq|FileHandleCloseReq|GetAddrInfoReq)/.test(kind))
}

/**
 * Exits without waiting for file operations. A normal exit would wait for them, and a read on a
 * dead mount may never return. A signal does not work: the first process of a container cannot kill
 * itself. execve always works: it replaces the process, or fails and aborts it. The new program
 * only exits, and its environment is empty, so that no setting, such as NODE_EXTRA_CA_CERTS on that
 * same mount, makes it block.
 */
function exitDespiteFiles(code: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FILES_MS)
  process.execve?.(process.execPath, ['node', '--eval', `process.exit(${code})`], {})
}
