// What .NET's runtimes are recorded running: three times 200 ms in `Hot.Spin`, called by a generic method, by a lambda, and by an
// async method on a thread of the pool. It uses no more of the framework than trimmed programs keep.

using System;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;

namespace Known
{
    public static class Hot
    {
        static ulong state = 1;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Spin(long milliseconds)
        {
            long end = Environment.TickCount64 + milliseconds;
            while (Environment.TickCount64 < end)
                for (int i = 0; i < 1000; i++)
                    state = state * 6364136223846793005UL + 1442695040888963407UL;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Outer(long milliseconds)
        {
            Spin(milliseconds);
            state++;
        }
    }

    public class Box<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public void Generic<U>(T of, U and, long milliseconds)
        {
            Hot.Outer(milliseconds);
            GC.KeepAlive(of);
            GC.KeepAlive(and);
        }
    }

    public static class Program
    {
        const long Milliseconds = 200;

        [MethodImpl(MethodImplOptions.NoInlining)]
        static async Task Async(long milliseconds)
        {
            await Task.Yield();
            Hot.Outer(milliseconds);
        }

        public static void Main()
        {
            Action<long> lambda = milliseconds =>
            {
                Hot.Outer(milliseconds);
                GC.KeepAlive(milliseconds);
            };
            new Box<string>().Generic<int>("", 1, Milliseconds);
            lambda(Milliseconds);
            Async(Milliseconds).Wait();
        }
    }
}
