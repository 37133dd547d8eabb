import type { AddressInfo } from 'node:net'
import { Registry } from '@prometheus-io/client'
import { StatusError } from '../api/status.ts'
import { lateResponse, serve } from '../endpoints/serve.ts'
import type { SignIn } from '../endpoints/ui/sign-in.ts'
import { AccessChecks } from '../gate/access-checks.ts'
import type { Gate } from '../gate/gate.ts'
import { RefusalLog } from '../gate/refusal.ts'
import type { ProxySettings } from '../http/connections/proxied-connections.ts'
import type { Handler } from '../http/exchange.ts'
import { DEFAULT_LIMITS } from '../http/limits.ts'
import { Listener } from '../http/listener.ts'
import { loadCertificate } from '../http/tls/certificate-files.ts'
import type { TlsSettings } from '../http/tls/secure-context.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import { Latch } from '../lib/latch.ts'
import type { Log, RootLog } from '../lib/log/log.ts'
import { addressText } from '../lib/network.ts'
import type { RunQueue } from '../lib/run-queue.ts'
import { withFlagName } from '../options/flag-errors.ts'
import type { Options } from '../options/options.ts'
import { clusterSources, MirrorsOfFile } from './clusters.ts'
import { Engine } from './engine.ts'
import { type OpenedFiles, openEngineFiles } from './files/engine-files.ts'
import { warnOfOpenFiles } from './files/file-modes.ts'
import { certificatePaths, followServingCertificate } from './files/serving-certificate.ts'
import { openGate } from './gate.ts'
import { Lifecycle } from './lifecycle.ts'
import { type ClientMemory, type OpenedLimits, openClientMemory, openLimits } from './limits.ts'
import { type MemoryBudget, openBudget, warnOfEventBytes } from './memory-budget.ts'
import { registerCertificateMetrics } from './metrics/certificates.ts'
import { ClusterLabels, registerClusterEventMetrics } from './metrics/clusters.ts'
import { type FilePollStatus, registerFileMetrics } from './metrics/files.ts'
import { registerMirrorMetrics } from './metrics/mirrors.ts'
import {
  endedWatchCounter,
  handshakeErrorCounter,
  proxyRefusalCounter,
  refusalCounter,
} from './metrics/refusals.ts'
import { openRunQueue } from './metrics/run-queue.ts'
import { healthProbes } from './probes.ts'
import { type Audit, openAudit } from './records/audit.ts'
import { openTracing, type Tracing } from './records/tracing.ts'
import { ServiceInstaller } from './services.ts'
import { Startup } from './startup.ts'

const LOOPBACK = '127.0.0.1'

/** The addresses of a server that listens. */
export interface Addresses {
  readonly secure: AddressInfo
  readonly insecure: AddressInfo | undefined
  /** The file of its certificate; a client that trusts this file trusts the server. */
  readonly certFile: string
}

/** What only `tidings dev` has. */
export interface DevParts {
  /** Exchanges the code in the link that it prints. */
  readonly signIn: SignIn
  /** Whether the server listens on any free port while another program uses its own. */
  readonly mayChangePort: boolean
}

/**
 * One replica: builds every part, passes to each the parts that it needs, and starts and stops them
 * in order. Replicas share nothing but etcd.
 */
export class Server {
  readonly #options: Options
  readonly #mayChangePort: boolean
  readonly #log: Log
  readonly #clock: Clock = monotonicClock
  readonly #startedAt: number = this.#clock.now()
  readonly #lifecycle: Lifecycle
  readonly #metrics = new Registry()
  readonly #polls: FilePollStatus
  readonly #budget: MemoryBudget
  readonly #engine: Engine
  readonly #startup: Startup
  readonly #services: ServiceInstaller
  readonly #listeners: Listener[] = []
  /** Polls of files and other background work, stopped at shutdown. */
  readonly #followers: { stop(): void }[] = []
  readonly #accessChecks: AccessChecks
  readonly #clusters: ClusterLabels
  #files: OpenedFiles | undefined
  #gate: Gate | undefined
  #audit: Audit | undefined
  #tracing: Tracing | undefined
  #limits: OpenedLimits | undefined
  readonly #clientMemory: ClientMemory
  readonly #runQueue: RunQueue
  readonly #setVerbosity: (level: number) => void
  readonly #rolesLoaded = new Latch()
  #onFatal: (error: unknown) => void = () => {}

  constructor(options: Options, log: RootLog, writer: { lastFlushedAt(): number }, dev?: DevParts) {
    this.#options = options
    this.#mayChangePort = dev?.mayChangePort ?? false
    this.#log = log
    this.#lifecycle = new Lifecycle(log)
    this.#polls = registerFileMetrics(this.#metrics)
    this.#runQueue = openRunQueue(this.#metrics)
    const budget = openBudget(options, log, this.#metrics)
    this.#engine = new Engine(options, log, this.#metrics, {
      polls: this.#polls,
      budget,
      runQueue: this.#runQueue,
    })
    this.#budget = budget
    this.#clusters = new ClusterLabels(
      options.clusterName,
      () => this.#files?.clusters?.clusters.keys() ?? [],
    )
    registerClusterEventMetrics(
      (scope) => this.#engine.countIn(scope),
      this.#clusters,
      this.#metrics,
    )
    this.#accessChecks = new AccessChecks({
      log: log.child({ logger: 'gate' }),
      onEnded: endedWatchCounter(this.#metrics),
      runQueue: this.#runQueue,
    })
    this.#followers.push(this.#accessChecks, warnOfEventBytes(budget, this.#engine, log))
    this.#clientMemory = openClientMemory(budget.clients, this.#metrics, () =>
      this.#listeners.reduce((sum, { waitingCount }) => sum + waitingCount, 0),
    )
    this.#startup = new Startup(
      [
        {
          name: 'generic-apiserver-start-informers',
          run: () => this.#openEngine(),
        },
        ...(options.authorizationModes.includes('RBAC')
          ? [{ name: 'rbac/bootstrap-roles', run: () => this.#rolesLoaded.opened }]
          : []),
        { name: 'apiservice-registration-controller', run: async () => this.#installServerInfo() },
      ],
      log,
    )
    this.#setVerbosity = (level) => {
      log.setVerbosity(level)
      log.info('Log level set', { level })
    }
    this.#services = new ServiceInstaller(options, this.#metrics, {
      signIn: dev?.signIn,
      budget,
    })
    const probes = healthProbes({
      engine: this.#engine,
      startup: this.#startup,
      services: this.#services.services,
      lifecycle: this.#lifecycle,
      writer,
      clock: this.#clock,
      startedAt: this.#startedAt,
      livezGraceMs: options.livezGracePeriodMs,
    })
    this.#services.installHealth(probes, log.child({ logger: 'health' }), this.#clock)
  }

  /** Whether events can be read and written. */
  get isSynced(): boolean {
    return this.#engine.unsynced === undefined
  }

  /**
   * Listens first and starts up in the background, so that probes get a response from the start.
   * `onFatal` is called with errors that only a restart can fix.
   */
  async start(onFatal: (error: unknown) => void): Promise<Addresses> {
    const { bindAddress, securePort } = this.#options
    const paths = await certificatePaths(this.#options, this.#log)
    const certificate = await withFlagName(
      '--tls-cert-file, --tls-private-key-file',
      loadCertificate(paths),
    )
    const polls = this.#polls
    const files = await openEngineFiles(this.#options, this.#log, polls)
    this.#files = files
    this.#followers.push(files)
    const gateLog = this.#log.child({ logger: 'gate' })
    const access = await openGate(this.#options, gateLog, polls, files.clusters)
    this.#followers.push(access)
    access.onChange(this.#accessChecks.changed)
    const { gate, clientAuthorities } = access
    this.#gate = gate
    this.#rolesLoaded.open()
    const tls: TlsSettings = {
      certificate,
      minVersion: this.#options.tlsMinVersion === 'VersionTLS13' ? 'TLSv1.3' : 'TLSv1.2',
      ...(clientAuthorities === undefined ? {} : { clientCa: clientAuthorities.pem }),
    }
    this.#services.installSelfReviews(access)
    await this.#services.installUi(this.#log)
    const opened = await openLimits(this.#options, this.#metrics, gateLog, {
      polls,
      space: this.#engine,
      budget: this.#budget,
      ledger: this.#clientMemory.ledger,
      clusters: this.#clusters,
      watches: { total: this.#budget.idle.watches, perUser: this.#budget.idle.userWatches },
      rootOf: (path) => this.#services.services.rootOf(path),
    })
    this.#followers.push(opened)
    this.#limits = opened
    const auditLog = this.#log.child({ logger: 'audit' })
    this.#audit = await openAudit(this.#options, auditLog, this.#metrics, polls)
    const tracingLog = this.#log.child({ logger: 'tracing' })
    this.#tracing = await openTracing(this.#options, tracingLog, this.#metrics)
    const handler = this.#handler(gate, opened)
    const secureListener = this.#listener(handler, bindAddress, securePort, tls)
    clientAuthorities?.onChange((pem) => secureListener.renewClientCa(pem))
    const secure = await this.#listenSecurely(secureListener)
    const insecure = await this.#listenInsecurely(handler)
    const served = followServingCertificate(this.#options, this.#log, {
      paths,
      certificate,
      listener: secureListener,
      polls,
    })
    this.#followers.push(served)
    registerCertificateMetrics(this.#metrics, () => [
      served.certificates,
      ...access.certificates,
      ...this.#engine.certificates,
    ])
    void warnOfOpenFiles(this.#options, this.#log, process.getuid?.() ?? 0)
    this.#onFatal = onFatal
    this.#startup.run().catch(onFatal)
    return { secure, insecure, certFile: paths.certFile }
  }

  /** Runs the shutdown of lifecycle.ts; resolves when nothing is left running. */
  async stop(): Promise<void> {
    const { shutdownDelayMs, requestTimeoutMs, shutdownSendRetryAfter } = this.#options
    await this.#lifecycle.stop(this.#listeners, {
      delayMs: shutdownDelayMs,
      requestTimeoutMs,
      sendRetryAfter: shutdownSendRetryAfter,
      onLastRequest: () => this.#limits?.limits.release(),
    })
    for (const follower of this.#followers) follower.stop()
    await this.#audit?.close()
    await this.#engine.close()
    await this.#tracing?.close()
  }

  async #listenSecurely(listener: Listener): Promise<AddressInfo> {
    const listening = this.#mayChangePort ? listenAnywhere(listener) : listener.listen()
    const address = await withFlagName('--bind-address, --secure-port', listening)
    this.#log.info('Serving securely', { address: addressText(address) })
    return address
  }

  /** Plain HTTP on the loopback interface; undefined when it is off. */
  async #listenInsecurely(handler: Handler): Promise<AddressInfo | undefined> {
    const { insecurePort } = this.#options
    if (insecurePort === 0) return undefined
    const listener = this.#listener(handler, LOOPBACK, insecurePort)
    const address = await withFlagName('--insecure-port', listener.listen())
    this.#log.info('Serving plain HTTP to this host', { address: addressText(address) })
    return address
  }

  /** Events are served as soon as the engine is open, which may itself still wait for etcd. */
  async #openEngine(): Promise<void> {
    const clusters = this.#files?.clusters
    const mirrors = clusters && new MirrorsOfFile(clusters, () => this.#engine.mirrors)
    if (mirrors !== undefined) registerMirrorMetrics(mirrors, this.#metrics)
    const admission = this.#limits?.admission
    await this.#engine.open((error) => this.#onFatal(error), { ...this.#files, admission })
    this.#services.installEvents({
      mirrored: mirrors,
      ...this.#engine.forClients,
      clusters: clusterSources(this.#options, this.#engine.storage, { clusters, mirrors }),
      decide: async (user, attributes) => this.#gate?.decide(user, attributes),
      version: () => this.#engine.storage.stats().version,
      admission: this.#limits?.admission,
      refusedIn: (cluster) => this.#limits?.refusedIn(cluster),
      accessChecks: this.#accessChecks,
    })
  }

  #installServerInfo(): void {
    this.#services.installServerInfo({
      setVerbosity: this.#setVerbosity,
      regardedKinds: (cluster) => this.#engine.regardedKinds(cluster),
      decide: async (user, attributes) => this.#gate?.decide(user, attributes),
    })
  }

  #handler(gate: Gate, { limits, observer }: OpenedLimits): Handler {
    return serve({
      services: this.#services.services,
      gate,
      limits,
      observer,
      runQueue: this.#runQueue,
      audit: this.#audit?.auditor,
      tracer: this.#tracing?.tracer,
      refusals: new RefusalLog({
        log: this.#log.child({ logger: 'gate' }),
        clock: this.#clock,
        onRefused: refusalCounter(this.#metrics),
      }),
      log: this.#log.child({ logger: 'http' }),
      clusterName: this.#options.clusterName,
      isTurningAway: () => this.#lifecycle.notAcceptingNewRequest.isOpen,
    })
  }

  #listener(handler: Handler, host: string, port: number, tls?: TlsSettings): Listener {
    const log = this.#log.child({ logger: 'http' })
    const listener = new Listener({
      host,
      port,
      tls,
      clock: this.#clock,
      limits: {
        ...DEFAULT_LIMITS,
        requestTimeoutMs: this.#options.requestTimeoutMs,
        streamsMax: this.#options.http2MaxStreamsPerConnection,
        stalledTimeoutMs: this.#options.stalledResponseTimeoutMs,
        connectionsMax: this.#budget.idle.sockets,
      },
      ...this.#clientMemory,
      handler,
      lateResponse: (request) => lateResponse(request, this.#audit?.auditor),
      onHandshakeError: tls === undefined ? undefined : handshakeErrorCounter(this.#metrics),
      // The port without TLS serves only processes on this host, which need no proxy.
      proxies: tls === undefined ? undefined : this.#proxies(log),
      onBug: (err, { method, path }) => {
        // The snapshot of a long list was evicted before its end was read: the client lists again.
        if (err instanceof StatusError) log.warn('List response aborted', { err, method, path })
        else log.error('Response aborted', { err, method, path })
      },
    })
    this.#listeners.push(listener)
    return listener
  }

  #proxies(log: Log): ProxySettings | undefined {
    const { proxyProtocolFrom: from } = this.#options
    if (from.length === 0) return undefined
    return { from, onRefused: proxyRefusalCounter(this.#metrics, log, this.#clock) }
  }
}

/** Listens on the port of the listener, or on any other one while that is in use. */
async function listenAnywhere(listener: Listener): Promise<AddressInfo> {
  try {
    return await listener.listen()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    return listener.listen(0)
  }
}
