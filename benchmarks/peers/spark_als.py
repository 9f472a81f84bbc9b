"""Spark's alternating least squares: RMSE and seconds of fits with several settings.

A small fit warms up the session. Tables are read and kept in memory before the clock starts. Users
and items without ratings are predicted as the mean. Rank and regularisation are chosen first, with
10 iterations; the best of them is run with fewer and more.
"""

import os
import time
from pathlib import Path

import numpy as np
import pyspark
from exchange import answer, load, rmse
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession


def session(threads):
    return (
        SparkSession.builder.master(f"local[{threads}]")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", threads)
        .config("spark.default.parallelism", threads)
        .config("spark.driver.extraJavaOptions", "-Xss16m")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )


def als(rank, reg, iterations, threads, seed):
    return ALS(
        rank=rank,
        regParam=reg,
        maxIter=iterations,
        numUserBlocks=threads,
        numItemBlocks=threads,
        userCol="user",
        itemCol="item",
        ratingCol="rating",
        seed=seed,
    )


def factors(frame, count, rank):
    """Return the factors of all users or items; NaN for those without ratings."""
    found = np.full((count, rank), np.nan)
    for row in frame.collect():
        found[row["id"]] = row["features"]
    return found


def measure(request):
    (_, _, rating), (user, item, held), (users, items) = load(request)
    threads = request["threads"]
    spark = session(threads)
    spark.sparkContext.setLogLevel("ERROR")
    spark.sparkContext.setCheckpointDir("checkpoints")  # or many iterations overflow its stack
    table = spark.read.parquet(request["table"]).repartition(threads).cache()
    table.count()
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    als(4, 0.1, 2, threads, 0).fit(table.limit(20_000)).userFactors.count()

    def processor():
        """Return the processor seconds of Java's process."""
        fields = Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def fit(rank, reg, iterations):
        began, cpu = time.perf_counter(), processor()
        model = als(rank, reg, iterations, threads, request["seed"]).fit(table)
        seconds, cpu = time.perf_counter() - began, processor() - cpu
        u = factors(model.userFactors, users, rank)
        v = factors(model.itemFactors, items, rank)
        guess = np.einsum("rk,rk->r", u[user], v[item])
        error = rmse(np.where(np.isnan(guess), rating.mean(), guess), held)
        return {
            "rank": rank,
            "reg": reg,
            "iterations": iterations,
            "seconds": seconds,
            "cpu": cpu,
            "rmse": error,
        }

    runs = [fit(rank, reg, 10) for rank in request["ranks"] for reg in request["regs"]]
    best = min(runs, key=lambda run: run["rmse"])
    runs += [fit(best["rank"], best["reg"], n) for n in request["iterations"]]
    spark.stop()
    return {"version": pyspark.__version__, "runs": runs}


answer(measure)
