# Checks on a real Windows machine what can't be run elsewhere: sessions of ETW, their events, stacks and files.
#
#     powershell -ExecutionPolicy Bypass -File docs\windows-check.ps1
#
# In an elevated PowerShell, at the top of the repository, with Rust installed. Out: `pass NAME` or `fail NAME: why` for each
# check, then `N passed, N failed`; status 1 if one failed. PowerShell 5.1 and later. In one that is not elevated it checks what
# is said then, and fails for all else.

Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'
$top = Split-Path -Parent $PSScriptRoot
$work = Join-Path ([IO.Path]::GetTempPath()) "collector-check-$PID"
New-Item -ItemType Directory -Path $work | Out-Null
$passed = 0
$failed = 0

function Check([string] $name, [scriptblock] $body) {
    try {
        & $body
        $script:passed++
        Write-Output "pass $name"
    } catch {
        $script:failed++
        Write-Output "fail ${name}: $($_.Exception.Message)"
    }
}

function Need([bool] $condition, [string] $message) {
    if (-not $condition) { throw $message }
}

# Runs a program; status, stdout and stderr of it.
function Run([string] $program, [string[]] $arguments, [int] $seconds = 120) {
    $out = Join-Path $work 'out.txt'
    $err = Join-Path $work 'err.txt'
    $quoted = $arguments | ForEach-Object { '"' + $_ + '"' }
    $options = @{ FilePath = $program; NoNewWindow = $true; PassThru = $true
                  RedirectStandardOutput = $out; RedirectStandardError = $err }
    if ($quoted) { $options.ArgumentList = $quoted }
    $process = Start-Process @options
    $null = $process.Handle
    if (-not $process.WaitForExit($seconds * 1000)) {
        $process.Kill()
        throw "$program $arguments took longer than $seconds s"
    }
    $process.WaitForExit()
    [pscustomobject]@{ Status = $process.ExitCode
                       Out = [string](Get-Content -Raw $out); Err = [string](Get-Content -Raw $err) }
}

# The numbers of the lines that begin with $word, added up.
function Total([string] $text, [string] $word) {
    $sum = 0
    foreach ($line in $text -split "`r?`n") {
        if ($line -match "^$word (?:\w+ )?(\d+)$") { $sum += [long] $Matches[1] }
    }
    $sum
}

# How many events of this provider or class, with this id and opcode, came.
function Events([string] $text, [string] $guid, [string] $id, [string] $opcode) {
    $sum = 0
    foreach ($line in $text -split "`r?`n") {
        if ($line -match "^event $guid $id $opcode (\d+)$") { $sum += [long] $Matches[1] }
    }
    $sum
}

# Records, and checks what holds of every recording.
function Record([string[]] $arguments) {
    $ran = Run $record $arguments
    Need ($ran.Status -eq 0) "status $($ran.Status): $($ran.Err)"
    Need ((Total $ran.Out 'disordered') -eq 0) "events are not in the order of their times:`n$($ran.Out)"
    $ran.Out
}

function Sessions { (& logman query -ets) -join "`n" }

# `collector run`, which must succeed.
function Collect([string[]] $arguments) {
    $ran = Run $collector (@('run') + $arguments)
    Need ($ran.Status -eq 0) "status $($ran.Status): $($ran.Err)"
    $ran.Err
}

# The lines of a file of JSON lines that are samples or events: $most of them at most, as PowerShell takes its time with each.
function Happened([string] $file, [int] $most = [int]::MaxValue) {
    Get-Content -Encoding UTF8 $file | Where-Object { $_ -match '^\{"type":"(sample|event)"' } | Select-Object -First $most |
        ForEach-Object { ConvertFrom-Json $_ }
}

# Units of 100 ns between samples of a CPU, as the whole machine has it: TraceQueryInformation of evntrace.h, class
# TraceSampledProfileIntervalInfo (5), of TRACE_PROFILE_INTERVAL, which is a source and the interval.
function Interval {
    if (-not ('Checks.Etw' -as [type])) {
        Add-Type -Namespace Checks -Name Etw -MemberDefinition @"
[System.Runtime.InteropServices.DllImport("advapi32.dll")] public static extern uint TraceQueryInformation(ulong session, int kind, byte[] told, uint size, out uint length);
"@
    }
    $told = New-Object byte[] 8
    $length = [uint32] 0
    $code = [Checks.Etw]::TraceQueryInformation(0, 5, $told, 8, [ref] $length)
    Need ($code -eq 0) "TraceQueryInformation: $code"
    [BitConverter]::ToUInt32($told, 4)
}

# What was lost of a recording, by the file of --stats.
function Lost([string] $file) {
    $stats = Get-Content -Raw $file | ConvertFrom-Json
    ($stats.lost.PSObject.Properties | ForEach-Object { $_.Value } | Measure-Object -Sum).Sum
}

# Presses Ctrl-C so many times in the console of a process, from a process of its own: one that is attached to another console has lost its own.
function Interrupt([int] $id, [int] $times = 1) {
    $source = @"
[System.Runtime.InteropServices.DllImport("kernel32.dll")] public static extern bool FreeConsole();
[System.Runtime.InteropServices.DllImport("kernel32.dll")] public static extern bool AttachConsole(uint id);
[System.Runtime.InteropServices.DllImport("kernel32.dll")] public static extern bool SetConsoleCtrlHandler(System.IntPtr handler, bool add);
[System.Runtime.InteropServices.DllImport("kernel32.dll")] public static extern bool GenerateConsoleCtrlEvent(uint what, uint group);
"@
    $file = Join-Path $work 'interrupt.ps1'
    $lines = "`$source = @'", $source, "'@",
        'Add-Type -Namespace Checks -Name Console -MemberDefinition $source',
        '[void][Checks.Console]::FreeConsole()',
        "if (-not [Checks.Console]::AttachConsole($id)) { exit 1 }",
        '[void][Checks.Console]::SetConsoleCtrlHandler([IntPtr]::Zero, $true)',
        "foreach (`$time in 1..$times) { if (-not [Checks.Console]::GenerateConsoleCtrlEvent(0, 0)) { exit 1 } }"
    Set-Content -Path $file -Value $lines
    $sender = Start-Process powershell -PassThru -Wait -WindowStyle Hidden -ArgumentList '-NoProfile', '-ExecutionPolicy', 'Bypass', '-File', "`"$file`""
    Need ($sender.ExitCode -eq 0) 'Ctrl-C could not be sent'
}

# Has C# spin for so many seconds in methods of its own (Spinner.Turn), which are compiled when this returns: whoever records from then on is told
# of them when the process ends, or the recording does. $spin is its script.
function Spinner([int] $seconds) {
    $there = Join-Path $work "spins-$([Guid]::NewGuid()).txt"
    $spinner = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-ExecutionPolicy', 'Bypass', '-File', `
        "`"$spin`"", "`"$there`"", "$seconds"
    $null = $spinner.Handle
    foreach ($second in 1..60) { if (-not (Test-Path $there)) { Start-Sleep -Seconds 1 } }
    if (-not (Test-Path $there)) {
        Stop-Process $spinner -ErrorAction SilentlyContinue
        throw 'what is to be recorded does not begin'
    }
    $spinner
}

# That a file of folded stacks has a function, by what its name matches.
function NeedNamed([string] $file, [string] $name) {
    $stacks = [string](Get-Content -Raw $file)
    Need ($stacks.Length -gt 0) "no stacks in $file"
    Need ($stacks -match $name) "no $name in $file, which begins with $($stacks.Substring(0, [math]::Min(500, $stacks.Length)))"
}

# Burns CPU until it is stopped.
function Burner { Start-Process powershell -ArgumentList '-NoProfile', '-Command', 'while ($true) { }' -PassThru -WindowStyle Hidden }

$perfInfo = 'ce1dbfb4-137e-4da6-87b0-3f59aa102cbc'
$thread = '3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c'
$process = '3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c'
$image = '2cb15d1d-5fc1-11d2-abe1-00a0c911f518'
$fileIo = '90cbdc39-4a3e-11d1-84f4-0000f80464e3'
$memory = '3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c'
$heap = '222962ab-6180-4b88-a825-346b75f2a24a'
$kernelProcess = '22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716'

$identity = [Security.Principal.WindowsPrincipal][Security.Principal.WindowsIdentity]::GetCurrent()
$elevated = $identity.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)

# One that is there already is somebody's.
$hadKernelLogger = $elevated -and (Sessions) -match '(?m)^NT Kernel Logger'

Push-Location $top
try {
    Check 'the workspace builds' {
        # Optimised: what it makes of the whole machine is to be there in time.
        & cargo build --release --lib --bin collector --example etw_record -p collector-common -p collector-unwinder `
            -p collector-export -p collector-windows-etw -p collector-user
        Need ($LASTEXITCODE -eq 0) 'cargo build failed'
        & cargo build --release --example own_work -p collector-user
        Need ($LASTEXITCODE -eq 0) 'cargo build failed'
    }
    Check 'the tests of windows-etw pass' {
        & cargo test -p collector-windows-etw --lib --tests
        Need ($LASTEXITCODE -eq 0) 'cargo test failed'
    }
    $built = Join-Path $top 'target\release'
    if ($env:CARGO_TARGET_DIR) { $built = Join-Path $env:CARGO_TARGET_DIR 'release' }
    $collector = Join-Path $built 'collector.exe'
    $record = Join-Path $built 'examples\etw_record.exe'
    $ownWork = Join-Path $built 'examples\own_work.exe'

    Check 'the command line' {
        Need ((Run $collector @('--help')).Out -match 'Records what a machine is doing') 'no help'
        Need ((Run $collector @('list', 'formats')).Out -match 'pprof') 'no formats'
        Need ((Run $collector @('nonsense')).Status -eq 2) 'wrong usage is not status 2'
        [IO.File]::WriteAllText((Join-Path $work 'x.folded'), "main;spin 3`n")
        Need ((Run $collector @('report', (Join-Path $work 'x.folded'))).Out -match 'spin') 'no report'
    }
    Check 'this PowerShell is elevated' { Need $elevated 'open PowerShell by "Run as administrator"; the rest needs it' }

    if (-not $elevated) {
        Check 'without the rights of an administrator the remedy is named' {
            $ran = Run $collector @('run', '-d', '1s', '-o', "$work\refused.folded")
            Need ($ran.Status -eq 1 -and $ran.Err -match 'Run as administrator') "status $($ran.Status): $($ran.Err)"
            Need (-not (Test-Path "$work\refused.folded")) 'an output is there'
            Need (-not (Get-ChildItem -Force $work -Filter '.collector-*')) 'its files were left behind'
        }
    }

    if ($elevated) {
        $interval = [uint32] 0
        Check 'Windows tells how often CPUs are sampled' {
            $script:interval = Interval
            Need ($interval -gt 0) 'never'
        }
        Check 'samples of CPUs, in order, with stacks of their times' {
            $burner = Burner
            try { $out = Record @('cpu_profiling', '5') } finally { Stop-Process $burner }
            # A CPU that burns for 5 s is sampled 997 times a second; those that have nothing to do are, too, and have no stacks.
            $busy = Total $out 'samples_busy'
            Need ($busy -gt 2500) "$busy samples of threads in 5 s`n$out"
            $stacks = Total $out 'stacks'
            $matched = Total $out 'stacks_matched'
            Need ($stacks -gt $busy / 2) "$stacks stacks for $busy samples"
            Need ($matched -ge $stacks * 0.98) "$matched of $stacks stacks belong to an event that was seen: are times raw?"
            Need ($out -match '(?m)^interval_100ns (\d+)') 'no interval'
            Need ([math]::Abs([long] $Matches[1] - 10030) -le 200) "the interval is $($Matches[1]) x 100 ns, not 10030"
        }
        Check 'processes and images that were there before, and are there at the end' {
            $out = Record @('processes', '2')
            Need ((Events $out $process 0 3) -gt 10) 'few processes from before'
            Need ((Total $out 'closures') -eq (Events $out $process 0 3)) "closures were not called for each of them`n$out"
            Need ((Total $out 'closure_errors') -eq 0) "closures failed`n$out"
            Need ((Events $out $process 0 4) -gt 10) 'few processes at the end: was the tail lost?'
            Need ((Events $out $image 0 3) -gt 100) 'few images from before'
        }
        Check 'switches of threads' {
            $out = Record @('off_cpu', '3')
            Need ((Events $out $thread 0 36) -gt 100) 'few switches'
            Need ((Events $out $thread 0 50) -gt 100) 'few wakeups'
            Need ((Total $out 'stacks_matched') -gt 100) 'few stacks'
        }
        Check 'files' {
            $writer = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-Command', `
                "1..400 | ForEach-Object { Set-Content -Path '$work\written.txt' -Value `$_; Start-Sleep -Milliseconds 10 }"
            try { $out = Record @('io_monitoring', '3') } finally { Stop-Process $writer -ErrorAction SilentlyContinue }
            Need ((Events $out $fileIo 0 64) -gt 100) "few files were opened`n$out"
            Need ((Events $out $fileIo 0 68) -gt 50) 'few writes'
        }
        Check 'memory of the system and of a heap' {
            $eater = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-Command', `
                'while ($true) { $a = New-Object byte[] 8000000; $null = [Runtime.InteropServices.Marshal]::AllocHGlobal(100); [GC]::Collect() }'
            try { $out = Record @('memory_tracking', '4', "$($eater.Id)") } finally { Stop-Process $eater }
            Need ((Events $out $memory 0 98) -gt 10) "few calls of VirtualAlloc`n$out"
            Need ((Events $out $heap 0 33) -gt 100) "few blocks of the heap`n$out"
        }
        Check 'an event of a provider, described, with its stack' {
            $starter = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-Command', `
                'while ($true) { & cmd.exe /c exit }'
            try { $out = Record @('etw:Microsoft-Windows-Kernel-Process:0x10', '4') } finally { Stop-Process $starter }
            Need ((Events $out $kernelProcess 1 1) -gt 3) "few processes were started`n$out"
            # ProcessRundown, which it tells when it is asked for its state.
            Need ((Events $out $kernelProcess 15 '\d+') -gt 10) "few processes from before`n$out"
            Need ((Total $out 'described') -gt 0) 'TDH describes none of the events'
            Need ((Total $out 'extended_stacks') -gt 0) 'no stacks'
        }
        Check 'a provider by its name alone' {
            $null = Record @('etw:Microsoft-Windows-Kernel-Power', '1')
        }
        Check '.NET: its methods, and who triggers collections' {
            $net = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-Command', `
                'while ($true) { [GC]::Collect(); Start-Sleep -Milliseconds 20 }'
            Start-Sleep -Seconds 2
            try { $out = Record @('dotnet_gc_analysis', '5') } finally { Stop-Process $net }
            Need ((Events $out 'e13c0d23-ccbc-4e12-931b-d9cc2eee27e4' 1 1) -gt 10) "few collections`n$out"
            # MethodDCStartVerbose and MethodDCEndVerbose, the second of which has those from before, too, with their names.
            Need ((Events $out 'a669021c-c450-4609-a035-5af59af4df18' 143 '\d+') -eq 0) 'methods were told at the start, which was not asked for'
            Need ((Events $out 'a669021c-c450-4609-a035-5af59af4df18' 144 '\d+') -gt 100) 'few methods at the end'
        }
        Check 'a file that Windows writes' {
            $etl = Join-Path $work 'x.etl'
            $null = Record @('cpu_profiling', '3', $etl)
            Need ((Get-Item $etl).Length -gt 100000) 'the file is small'
            $xml = Join-Path $work 'summary.txt'
            & tracerpt $etl -summary $xml -o (Join-Path $work 'dump.csv') -of CSV -y | Out-Null
            Need ((Get-Content -Raw $xml) -match 'PerfInfo') 'tracerpt finds no samples in it'
        }
        Check 'a file that Windows writes while its events are told' {
            $etl = Join-Path $work 'both.etl'
            $out = Record @('both', 'processes', '3', $etl)
            $told = Events $out $process 0 3
            Need ($told -gt 10) "few processes were told`n$out"
            $ran = Run $collector @('convert', $etl, '-o', "$work\both.jsonl")
            Need ($ran.Status -eq 0) "status $($ran.Status): $($ran.Err)"
            $written = @(Happened (Join-Path $work 'both.jsonl') | Where-Object { $_.event -match 'Process/DCStart' })
            Need ($written.Count -eq $told) "$($written.Count) processes in the file, of $told that were told"
        }
        Check 'collector run: the whole machine, in several formats' {
            $burner = Burner
            try {
                $ran = Run $collector @('run', '-d', '4s', '-o', "$work\run.folded", '-o', "$work\run.pb.gz", '-o', "$work\run.html",
                                        '-o', "$work\run.etl", '--stats', "$work\run.json")
            } finally { Stop-Process $burner }
            Need ($ran.Status -eq 0) "status $($ran.Status): $($ran.Err)"
            foreach ($name in 'run.folded', 'run.pb.gz', 'run.html', 'run.etl') {
                Need ((Get-Item (Join-Path $work $name)).Length -gt 1000) "$name is small`n$($ran.Err)"
            }
            $stats = Get-Content -Raw (Join-Path $work 'run.json') | ConvertFrom-Json
            Need ($stats.backend -eq 'etw' -and $stats.kernel -match '^Windows ') "$($stats.backend), $($stats.kernel)"
            Need ($stats.samples.delivered -gt 2000) "$($stats.samples.delivered) samples in 4 s"
            Need ($stats.samples.produced -eq $stats.samples.delivered + (Lost "$work\run.json")) 'samples are not accounted for'
            # Exports of kernel32 and ntdll, on which user's stacks stand.
            $stacks = Get-Content -Raw (Join-Path $work 'run.folded')
            Need ($stacks -match 'BaseThreadInitThunk' -and $stacks -match 'RtlUserThreadStart') 'functions have no names'
            Need ((Run $collector @('report', "$work\run.etl")).Out -match 'powershell|ntoskrnl|\.exe|\.dll') 'its .etl is not reported'
            Need (-not (Get-ChildItem -Force $work -Filter '.collector-*')) 'its files were left behind'
        }
        Check 'collector run: a command and what it makes, and nothing else' {
            $burner = Burner
            try {
                $ran = Run $collector @('run', '-o', "$work\command.folded", '-o', "$work\command.jsonl", '--', 'cmd.exe', '/c', 'powershell', '-NoProfile', '-Command',
                                        '$end=(Get-Date).AddSeconds(2);while((Get-Date)-lt$end){}')
            } finally { Stop-Process $burner }
            Need ($ran.Status -eq 0 -and $ran.Err -match 'the command exited with status 0') "status $($ran.Status): $($ran.Err)"
            Need ((Get-Item (Join-Path $work 'command.folded')).Length -gt 0) 'no stacks'
            $happened = @(Happened (Join-Path $work 'command.jsonl'))
            $names = $happened | ForEach-Object { $_.process } | Sort-Object -Unique
            Need (($names -join ' ') -match 'powershell') "no samples of the command's child: $names"
            Need (-not ($happened | Where-Object { $_.pid -eq $burner.Id })) 'samples of the burner'
            Need (-not ($names | Where-Object { $_ -notmatch 'cmd|powershell|conhost' })) "samples of others: $names"
        }
        Check 'collector run: processes that were made' {
            $ran = Run $collector @('run', '-s', 'processes', '-o', "$work\lives.jsonl", '--', 'cmd.exe', '/c', 'exit 3')
            Need ($ran.Status -eq 0 -and $ran.Err -match 'code 3') "status $($ran.Status): $($ran.Err)"
        }
        Check 'collector run -p: a process that was there, and no other' {
            $burner = Burner
            $other = Burner
            try {
                $null = Collect @('-p', "$($burner.Id)", '-d', '3s', '-o', "$work\pid.jsonl")
            } finally { Stop-Process $burner, $other }
            $happened = @(Happened (Join-Path $work 'pid.jsonl'))
            Need ($happened.Count -gt 1000) "$($happened.Count) samples in 3 s"
            Need (-not ($happened | Where-Object { $_.pid -eq $other.Id })) 'samples of the other burner'
            # A console has a process of its own, which the one that has the console makes.
            $others = $happened | Where-Object { $_.pid -ne $burner.Id -and $_.process -notmatch 'conhost' }
            $names = @($others | Where-Object { $_ } | ForEach-Object { $_.process } | Sort-Object -Unique)
            Need ($names.Count -eq 0) "samples of others: $names"
        }
        Check 'collector run -p: it ends with its process' {
            $burner = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-Command', `
                '$end=(Get-Date).AddSeconds(6);while((Get-Date)-lt$end){}'
            $ran = Run $collector @('run', '-p', "$($burner.Id)", '-o', "$work\ends.jsonl") 60
            Need ($burner.HasExited) 'it ended before its process did'
            Need ($ran.Status -eq 0) "status $($ran.Status): $($ran.Err)"
            Need (@(Happened (Join-Path $work 'ends.jsonl')).Count -gt 1000) "few samples: $($ran.Err)"
        }
        Check 'collector run -p: a process that is not there' {
            $ran = Run $collector @('run', '-p', '4294967292', '-d', '1s', '-o', "$work\absent.folded") 30
            Need ($ran.Status -ne 0) "status 0: $($ran.Err)"
        }
        Check 'collector run: times off the CPU, as long as they were' {
            $sleeper = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-Command', `
                'while ($true) { [Threading.Thread]::Sleep(100) }'
            Start-Sleep -Seconds 2
            try {
                $null = Collect @('-s', 'off_cpu', '-p', "$($sleeper.Id)", '-d', '4s', '-o', "$work\off.jsonl")
            } finally { Stop-Process $sleeper }
            $times = Happened (Join-Path $work 'off.jsonl') | Where-Object { $_.event -eq 'off_cpu' -and $_.value -gt 9e7 -and $_.value -lt 1.3e8 }
            # A sleep of 100 ms takes up to 116 ms by the clock that Windows has without being asked.
            Need (@($times).Count -gt 20) "$(@($times).Count) sleeps of about 100 ms in 4 s"
        }
        Check 'collector run: a heap, whose file lies beside the other' {
            $eater = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-Command', `
                'while ($true) { $null = [Runtime.InteropServices.Marshal]::AllocHGlobal(100) }'
            try {
                $null = Collect @('-s', 'memory_tracking', '-p', "$($eater.Id)", '-d', '3s', '-o', "$work\memory.etl", '-o', "$work\memory.folded")
            } finally { Stop-Process $eater }
            Need ((Get-Item "$work\memory.heap.etl").Length -gt 10000) 'no blocks of a heap'
            $ran = Run $collector @('convert', "$work\memory.etl", '-o', "$work\again.folded")
            Need ($ran.Status -eq 0 -and $ran.Err -match 'read with .*memory\.heap\.etl') "status $($ran.Status): $($ran.Err)"
            $ran = Run $collector @('run', '-d', '1s', '-o', "$work\memory.etl")
            Need ($ran.Status -eq 2 -and $ran.Err -match 'memory\.heap\.etl is there already') "status $($ran.Status): $($ran.Err)"
        }
        Check 'collector run: the heap of a command' {
            $null = Collect @('-s', 'memory_tracking', '-o', "$work\heap.jsonl", '--', 'powershell', '-NoProfile', '-Command',
                              '1..2000 | ForEach-Object { $null = [Runtime.InteropServices.Marshal]::AllocHGlobal(100) }')
            $blocks = @(Happened (Join-Path $work 'heap.jsonl') | Where-Object { $_.event -eq 'alloc_space' })
            Need ($blocks.Count -gt 2000) "$($blocks.Count) blocks of a heap"
        }
        Check 'collector run: an event of a provider' {
            $starter = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-Command', `
                'while ($true) { & cmd.exe /c exit }'
            try {
                $null = Collect @('-e', 'etw:Microsoft-Windows-Kernel-Process:0x10', '-d', '4s', '-o', "$work\event.jsonl")
            } finally { Stop-Process $starter }
            $started = @(Happened (Join-Path $work 'event.jsonl') | Where-Object { $_.event -match '^Microsoft-Windows-Kernel-Process/ProcessStart' })
            Need ($started.Count -gt 3) "$($started.Count) processes were started"
            $images = $started | ForEach-Object { $_.fields.ImageName } | Sort-Object -Unique
            Need ([bool] ($images -match '\\cmd\.exe$')) "none of them is cmd.exe: $images"
        }
        Check 'collector run: events of a manifest that Windows alone knows have names' {
            $writer = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-Command', `
                "1..400 | ForEach-Object { Set-Content -Path '$work\written.txt' -Value `$_; Start-Sleep -Milliseconds 10 }"
            try {
                $null = Collect @('-e', 'etw:Microsoft-Windows-Kernel-File:0x90', '-d', '3s', '-o', "$work\named.jsonl")
            } finally { Stop-Process $writer -ErrorAction SilentlyContinue }
            $names = @(Happened (Join-Path $work 'named.jsonl')) | ForEach-Object { $_.event } | Sort-Object -Unique
            Need ([bool] ($names -match '^Microsoft-Windows-Kernel-File/')) "no event of it has a name: $names"
            Need (-not ($names -match '^edd08927-')) "events have no names: $names"
        }
        Check 'collector run: .NET' {
            $net = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-Command', `
                'while ($true) { [GC]::Collect(); Start-Sleep -Milliseconds 20 }'
            Start-Sleep -Seconds 2
            try {
                $null = Collect @('-s', 'dotnet_gc_analysis', '-d', '4s', '-o', "$work\net.jsonl", '-o', "$work\net.etl")
            } finally { Stop-Process $net }
            $collections = @(Happened (Join-Path $work 'net.jsonl') | Where-Object { $_.event -match 'GC/Triggered' })
            Need ($collections.Count -gt 10) "$($collections.Count) collections were triggered"
        }
        # Does a little of all that a scenario records: throws, allocates, touches memory, waits for a lock, writes and reads a file.
        $busy = Join-Path $work 'busy.ps1'
        Set-Content -Path $busy -Value @(
            "Add-Type -TypeDefinition @'"
            'using System; using System.IO; using System.Runtime.InteropServices; using System.Threading;'
            'public static class Busy {'
            '    static readonly object door = new object();'
            '    static readonly AutoResetEvent there = new AutoResetEvent(false), back = new AutoResetEvent(false);'
            '    static void Pass() { while (true) { lock (door) { Thread.Sleep(2); } } }'
            '    static void Answer() { while (true) { there.WaitOne(); back.Set(); } }'
            '    static void Start(ThreadStart body) { Thread thread = new Thread(body); thread.IsBackground = true; thread.Start(); }'
            '    public static void Work(string file) {'
            '        Start(Pass); Start(Pass); Start(Answer);'
            '        while (true) {'
            '            try { throw new InvalidOperationException(); } catch (InvalidOperationException) { }'
            '            for (int i = 0; i < 100; i++) { GC.KeepAlive(new byte[10000]); }'
            '            GC.Collect();'
            '            Marshal.FreeHGlobal(Marshal.AllocHGlobal(100));'
            # So large a block is memory of its own.
            '            IntPtr large = Marshal.AllocHGlobal(2000000);'
            '            for (int i = 0; i < 2000000; i += 65536) { Marshal.WriteByte(large, i, 1); }'
            '            Marshal.FreeHGlobal(large);'
            '            File.WriteAllText(file, "x"); File.ReadAllText(file);'
            '            there.Set(); back.WaitOne();'
            '            Thread.Sleep(20);'
            '        }'
            '    }'
            '}'
            "'@"
            "[Busy]::Work('$work\busy.txt')"
        )
        # Every scenario, with what one of its records is in JSON lines; of `processes` what they were is printed.
        $scenarios = [ordered] @{
            'cpu_profiling' = 'cpu'; 'off_cpu' = 'off_cpu'; 'wall_clock' = 'wall_clock'; 'scheduling' = 'run_queue'
            'page_faults' = 'minor-faults'; 'processes' = $null; 'syscalls' = 'syscalls'; 'memory_tracking' = 'alloc_space'
            'memory_growth' = 'mapped_space'; 'io_monitoring' = 'file_io'; 'dotnet_gc_analysis' = 'GC/Triggered'
            'dotnet_allocations' = 'GC/AllocationTick'; 'dotnet_exceptions' = 'Exception/Start'; 'dotnet_contention' = 'Contention/Start'
        }
        $worker = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-ExecutionPolicy', 'Bypass', '-File', "`"$busy`""
        try {
            # C# is compiled by then, and .NET and its methods are there.
            foreach ($second in 1..60) { if (-not (Test-Path "$work\busy.txt")) { Start-Sleep -Seconds 1 } }
            Start-Sleep -Seconds 2
            foreach ($scenario in $scenarios.Keys) {
                Check "collector run -s $scenario" {
                    Need (-not $worker.HasExited) 'what is to be recorded has ended'
                    $file = Join-Path $work "$scenario.jsonl"
                    $kind = $scenarios[$scenario]
                    if ($kind) {
                        $told = Collect @('-s', $scenario, '-p', "$($worker.Id)", '-d', '2s', '-o', $file)
                        $own = @(Happened $file 20000 | Where-Object { $_.event -eq $kind -or $_.event -like "*/$kind" })
                        Need ($own.Count -gt 0) "no $kind`n$told"
                        Need (-not ($own | Where-Object { $_.process -notmatch 'powershell|conhost' })) 'of other processes'
                    } else {
                        $starter = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-Command', `
                            'while ($true) { & cmd.exe /c exit 300 }'
                        try { $told = Collect @('-s', $scenario, '-d', '3s', '-o', $file) } finally { Stop-Process $starter }
                        # Who made it, and how it ended.
                        Need ($told -match 'powershell\.exe.* code 300') "no process that was made`n$told"
                    }
                    Need ($told -notmatch 'was asked for (its events|its state)') "a provider did not answer`n$told"
                }
            }
            Check 'collector run -s off_cpu:min: shorter waits are left out' {
                # What counts is the whole time off the CPU: a short wait is there where the thread waited long for a CPU behind it.
                $shares = foreach ($number in 0, 1) {
                    $file = Join-Path $work "waits$number.jsonl"
                    $null = Collect @('-s', ('off_cpu', 'off_cpu:min=10ms')[$number], '-p', "$($worker.Id)", '-d', '2s', '-o', $file)
                    $waits = @(Happened $file | Where-Object { $_.event -eq 'off_cpu' })
                    Need ($waits.Count -gt 20) "$($waits.Count) waits"
                    @($waits | Where-Object { $_.value -lt 9e6 }).Count / $waits.Count
                }
                Need ($shares[0] -gt 0.1) "$($shares[0]) of all waits are short, so this checks nothing"
                Need ($shares[1] -lt 0.1) "$($shares[1]) of those that are left are short"
            }
            Check 'collector run --comm: processes of a name alone, in upper or lower case' {
                $file = Join-Path $work 'comm.jsonl'
                $null = Collect @('--comm', 'PowerShell.EXE', '-d', '2s', '-o', $file)
                $happened = @(Happened $file)
                Need ($happened.Count -gt 500) "$($happened.Count) samples in 2 s"
                Need (-not ($happened | Where-Object { $_.process -ne 'powershell.exe' })) 'samples of others'
                $told = Collect @('--comm', 'powershel.exe', '-d', '1s', '-o', "$work\nobody.jsonl")
                Need ($told -match 'powershell\.exe') "the name that is like it is not told`n$told"
            }
            Check 'collector run: methods of .NET that were compiled before have names, without -p' {
                $null = Collect @('-d', '3s', '-o', "$work\methods.folded")
                NeedNamed "$work\methods.folded" 'Busy\.Work'
            }
            Check 'collector run -p: a process that has run for long has names, those of its methods and of its images' {
                $null = Collect @('-p', "$($worker.Id)", '-d', '3s', '-o', "$work\long.folded")
                NeedNamed "$work\long.folded" 'Busy\.Work'
                NeedNamed "$work\long.folded" 'BaseThreadInitThunk'
            }
        } finally { Stop-Process $worker -ErrorAction SilentlyContinue }
        $spin = Join-Path $work 'spin.ps1'
        Set-Content -Path $spin -Value @(
            "Add-Type -TypeDefinition @'"
            'using System; using System.IO; using System.Runtime.CompilerServices;'
            'public static class Spinner {'
            '    [MethodImpl(MethodImplOptions.NoInlining)]'
            '    static double Turn(double x) { for (int i = 0; i < 1000000; i++) { x = Math.Sqrt(x + i); } return x; }'
            '    public static double Spin(string file, int seconds) {'
            '        DateTime end = DateTime.Now.AddSeconds(seconds);'
            '        double x = Turn(1);'
            '        File.WriteAllText(file, "x");'
            '        while (DateTime.Now < end) { x = Turn(x); }'
            '        return x;'
            '    }'
            '}'
            "'@"
            '[void] [Spinner]::Spin($args[0], [int] $args[1])'
        )
        foreach ($whose in 'all', 'one') {
            Check "collector run: a process of .NET that ends meanwhile has told its methods: recording $whose" {
                $spinner = Spinner 12
                $arguments = @('-d', '25s', '-o', "$work\ended-$whose.folded")
                if ($whose -eq 'one') { $arguments = @('-p', "$($spinner.Id)") + $arguments }
                try {
                    $null = Collect $arguments
                    Need ($spinner.HasExited) 'it goes on, so this checks nothing'
                } finally { Stop-Process $spinner -ErrorAction SilentlyContinue }
                NeedNamed "$work\ended-$whose.folded" 'Spinner\.Turn'
            }
        }
        # Makes one that makes one that spins, and says which they are.
        $maker = Join-Path $work 'maker.ps1'
        Set-Content -Path $maker -Value @(
            'param($what, $there, $spin)'
            '$begin = ''-NoProfile'', ''-ExecutionPolicy'', ''Bypass'', ''-File'''
            'if ($what -eq ''root'') {'
            '    $arguments = $begin + @("`"$PSCommandPath`"", ''between'', "`"$there`"", "`"$spin`"")'
            '} else {'
            '    $arguments = $begin + @("`"$spin`"", "`"$there`"", ''120'')'
            '}'
            '$made = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList $arguments'
            'Set-Content -Path "$there.$what" -Value $made.Id'
            'Start-Sleep -Seconds 300'
        )
        Check 'collector run -p: what was made before by one that ends meanwhile has names' {
            $there = Join-Path $work 'made.txt'
            $root = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-ExecutionPolicy', 'Bypass', '-File', `
                "`"$maker`"", 'root', "`"$there`"", "`"$spin`""
            $made = @()
            try {
                foreach ($second in 1..90) { if (-not (Test-Path $there)) { Start-Sleep -Seconds 1 } }
                Need (Test-Path $there) 'what is to be recorded does not begin'
                $made = @('root', 'between' | ForEach-Object { [int] (Get-Content "$there.$_") })
                $running = Start-Process $collector -PassThru -WindowStyle Hidden -ArgumentList 'run', '-p', "$($root.Id)", '-d', '8s', `
                    '-o', "`"$work\made.folded`""
                $null = $running.Handle
                Start-Sleep -Seconds 4
                Need (-not $running.HasExited) 'it has ended already'
                Stop-Process -Id $made[0] -Force
                if (-not $running.WaitForExit(60000)) {
                    Stop-Process $running
                    throw 'it went on for a minute'
                }
                Need ($running.ExitCode -eq 0) "status $($running.ExitCode)"
            } finally {
                Stop-Process $root -ErrorAction SilentlyContinue
                if ($made) { Stop-Process -Id $made -ErrorAction SilentlyContinue }
            }
            NeedNamed "$work\made.folded" 'Spinner\.Turn'
        }
        Check 'collector doctor' {
            $ran = Run $collector @('doctor')
            Need ($ran.Status -eq 0 -and $ran.Out -match '(?m)^ok +sessions of ETW') "status $($ran.Status): $($ran.Out)$($ran.Err)"
            Need ($ran.Out -match 'recording works here') $ran.Out
            Need ((Interval) -eq $interval) "the interval is $(Interval) x 100 ns, and was $interval"
        }
        Check 'collector convert: what Windows wrote' {
            foreach ($name in 'y.pb.gz', 'y.html', 'y.nettrace') {
                $ran = Run $collector @('convert', "$work\run.etl", '-o', "$work\$name")
                Need ($ran.Status -eq 0) "status $($ran.Status): $($ran.Err)"
                Need ((Get-Item (Join-Path $work $name)).Length -gt 1000) "$name is small"
            }
            $ran = Run $collector @('convert', "$work\run.etl", '-o', "$work\y.folded")
            $stacks = Get-Content -Raw (Join-Path $work 'y.folded')
            Need ($stacks -match 'BaseThreadInitThunk' -and $stacks -match 'RtlUserThreadStart') "functions have no names`n$($ran.Err)"
        }
        Check 'collector run: Ctrl-C ends it, and nothing is lost' {
            $running = Start-Process $collector -PassThru -WindowStyle Hidden -ArgumentList 'run', '-o', "`"$work\interrupted.pb.gz`"", `
                '--stats', "`"$work\interrupted.json`""
            $null = $running.Handle
            Start-Sleep -Seconds 5
            Interrupt $running.Id
            if (-not $running.WaitForExit(60000)) {
                Stop-Process $running
                throw 'it went on for a minute'
            }
            Need ($running.ExitCode -eq 0) "status $($running.ExitCode)"
            Need ((Get-Item "$work\interrupted.pb.gz").Length -gt 1000) 'no profile'
            Need ((Lost "$work\interrupted.json") -eq 0) "lost: $(Get-Content -Raw "$work\interrupted.json")"
            Need (-not ((Sessions) -match '(?m)^Collector')) (Sessions)
        }
        Check 'collector run: two of Ctrl-C end it at once, and all is as it was' {
            $running = Start-Process $collector -PassThru -WindowStyle Hidden -ArgumentList 'run', '-F', '2000', '-o', "`"$work\abandoned.folded`""
            $null = $running.Handle
            Start-Sleep -Seconds 5
            $during = Interval
            Interrupt $running.Id 2
            if (-not $running.WaitForExit(60000)) {
                Stop-Process $running
                throw 'it went on for a minute'
            }
            Need ($during -ne $interval) "the interval was $during x 100 ns as before, so this checks nothing"
            Need ($running.ExitCode -ne 0) 'status 0: it was no second one'
            Need (-not (Test-Path "$work\abandoned.folded")) 'an output is there'
            Need (-not ((Sessions) -match '(?m)^Collector')) (Sessions)
            Need ((Interval) -eq $interval) "the interval is $(Interval) x 100 ns, and was $interval"
        }
        Check 'a program that embeds the library' {
            $ran = Run $ownWork @("$work\own.pb.gz")
            Need ($ran.Status -eq 0 -and $ran.Out -match '(?m)^[1-9]\d* samples') "status $($ran.Status): $($ran.Out)$($ran.Err)"
            Need ((Get-Item "$work\own.pb.gz").Length -gt 1000) 'no profile'
        }
        Check 'collector list providers' {
            Need ((Run $collector @('list', 'providers')).Out -match 'Microsoft-Windows-Kernel-Process') 'not among them'
        }
        Check 'a second one of the same name is told that there is one' {
            $first = Start-Process $record -ArgumentList 'processes', '8' -PassThru -WindowStyle Hidden
            Start-Sleep -Seconds 3
            $second = Run $record @('processes', '1')
            $first.WaitForExit()
            Need ($second.Status -eq 1 -and $second.Err -match 'is recording for another process') "status $($second.Status): $($second.Err)"
        }
        Check 'what found no buffer is told as lost' {
            $caller = Start-Process powershell -PassThru -WindowStyle Hidden -ArgumentList '-NoProfile', '-Command', `
                'while ($true) { [void][IO.File]::Exists(''C:\absent'') }'
            try { $out = Record @('late', 'syscalls', '10') } finally { Stop-Process $caller }
            Need ($out -match '(?m)^lost Main (\d+) (\d+) (\d+)') "nothing is told of what was lost`n$out"
            $lost = [long] $Matches[1] + [long] $Matches[2] + [long] $Matches[3]
            Need ($lost -gt 0) "nothing was lost, so this checks nothing`n$out"
        }
        Check 'where all system loggers are taken, the kernel has a session of its own' {
            # Windows has eight, two of them under names of its own, and others may have some; the first that finds none takes
            # NT Kernel Logger, those behind it are told.
            $all = foreach ($number in 1..9) {
                Start-Process $record -ArgumentList 'as', "Collector.check$number", 'processes', '12' -PassThru -WindowStyle Hidden `
                    -RedirectStandardOutput "$work\check$number.out" -RedirectStandardError "$work\check$number.err"
                Start-Sleep -Milliseconds 800
            }
            $all | ForEach-Object { $_.WaitForExit() }
            $texts = 1..9 | ForEach-Object { [string](Get-Content -Raw "$work\check$_.out") }
            $errors = (1..9 | ForEach-Object { [string](Get-Content -Raw "$work\check$_.err") }) -join ' '
            $kernel = @($texts | Where-Object { $_ -match '(?m)^lost Kernel ' })
            Need ($kernel.Count -eq 1) "$($kernel.Count) of nine took NT Kernel Logger: $errors"
            Need ((Events $kernel[0] $process 0 3) -gt 10) "few processes from before`n$($kernel[0])"
            $whole = @($texts | Where-Object { $_ -match '(?m)^lost Main ' })
            Need ($whole.Count -eq 9 -or $errors -match 'sessions for the kernel are in use') "$($whole.Count) of nine recorded: $errors"
            Need (-not ((Sessions) -match '(?m)^(Collector|NT Kernel Logger)')) (Sessions)
        }
        Check 'a session that was left behind is taken over' {
            $first = Start-Process $record -ArgumentList 'processes', '60' -PassThru -WindowStyle Hidden
            Start-Sleep -Seconds 3
            Stop-Process $first -Force
            $first.WaitForExit()
            Need ((Sessions) -match '(?m)^Collector\s') 'the killed process left no session, so this checks nothing'
            $null = Record @('processes', '1')
        }
        Check 'how often CPUs are sampled is set back behind a recording that was killed' {
            $first = Start-Process $collector -PassThru -WindowStyle Hidden -ArgumentList 'run', '-F', '2000', '-o', "`"$work\killed.folded`""
            Start-Sleep -Seconds 5
            $during = Interval
            Stop-Process $first -Force
            $first.WaitForExit()
            Need ($during -ne $interval -and (Interval) -eq $during) "the interval is $(Interval) x 100 ns, so this checks nothing"
            $told = Collect @('-s', 'processes', '-d', '1s', '-o', "$work\after.jsonl")
            Need ($told -match 'recording that was killed') "it is not told`n$told"
            Need ((Interval) -eq $interval) "the interval is $(Interval) x 100 ns, and was $interval"
        }
        Check 'all that a killed recording has left goes with the next one' {
            $running = Start-Process $collector -PassThru -WindowStyle Hidden -ArgumentList 'run', '-s', 'memory_tracking', '-p', "$PID", '-o', "`"$work\left.folded`""
            Start-Sleep -Seconds 4
            Stop-Process $running -Force
            $running.WaitForExit()
            Need ((Sessions) -match '(?m)^Collector-heap\s') 'the killed recording left no session for the heap, so this checks nothing'
            $null = Collect @('-s', 'processes', '-d', '1s', '-o', "$work\after.folded")
            Need (-not ((Sessions) -match '(?m)^Collector')) (Sessions)
            Need (-not (Get-ChildItem -Force $work -Filter '.collector-*')) 'its files were left behind'
        }
        Check 'no session is left, and the interval of samples is as it was' {
            Need (-not ((Sessions) -match '(?m)^Collector')) (Sessions)
            Need ((Interval) -eq $interval) "the interval is $(Interval) x 100 ns, and was $interval"
        }
    }
} finally {
    Pop-Location
    if ($elevated) {
        foreach ($line in (Sessions) -split "`n") {
            if ($line -match '^(Collector\S*)') { & logman stop $Matches[1] -ets | Out-Null }
            if ($line -match '^(NT Kernel Logger)' -and -not $hadKernelLogger) { & logman stop $Matches[1] -ets | Out-Null }
        }
    }
    Remove-Item -Recurse -Force $work -ErrorAction SilentlyContinue
}
Write-Output "$passed passed, $failed failed"
exit [int]($failed -gt 0)
