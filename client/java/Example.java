import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.rpc.ErrorInfo;
import io.grpc.Deadline;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientResponseObserver;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;
import tilewire.v1.ArraySpec;
import tilewire.v1.Chunk;
import tilewire.v1.DType;
import tilewire.v1.DescribeRequest;
import tilewire.v1.DescribeResponse;
import tilewire.v1.DeviceGrpc;
import tilewire.v1.ExecuteRequest;
import tilewire.v1.ExecuteResponse;
import tilewire.v1.GaussianOp;
import tilewire.v1.GaussianPdfRequest;
import tilewire.v1.KernelsGrpc;
import tilewire.v1.Open;
import tilewire.v1.Opened;
import tilewire.v1.Operand;
import tilewire.v1.RmseRequest;

/**
 * A client of Tilewire by generated stubs alone: the server's limits, a small call, a refused one, a streamed one.
 *
 * <p>{@code Example [ADDRESS]}. Every answer is compared with what is computed here; another one ends the program with exit
 * code 1.
 */
public final class Example {
  static final GaussianOp NORMAL = GaussianOp.newBuilder().setMean(0.5).setStddev(2).build();
  static final Metadata.Key<String> PUSHBACK = Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);

  /** For all that follows, waiting for a busy server included. */
  static final Deadline DEADLINE = Deadline.after(1, TimeUnit.MINUTES);

  public static void main(String[] arguments) throws Exception {
    String address = arguments.length > 0 ? arguments[0] : "localhost:50051";
    ManagedChannel channel = ManagedChannelBuilder.forTarget(address).usePlaintext().build(); // over a network: TLS
    try {
      DescribeRequest question = DescribeRequest.getDefaultInstance();
      DescribeResponse server = DeviceGrpc.newBlockingStub(channel).withDeadline(DEADLINE).describe(question);
      System.out.printf("server %s on %s: messages to %d bytes, unary ones to %d%n", server.getVersion(),
          server.getDevices(0).getId(), server.getLimits().getMaxMessageBytes(), server.getLimits().getMaxUnaryBytes());
      rmse(KernelsGrpc.newBlockingStub(channel).withDeadline(DEADLINE));
      refused(KernelsGrpc.newBlockingStub(channel).withDeadline(DEADLINE));
      gaussianPdf(KernelsGrpc.newStub(channel).withDeadline(DEADLINE));
    } finally {
      channel.shutdownNow();
    }
  }

  /** Sends both arrays in one message, which Limits.max_unary_bytes allows; more goes by a stream. */
  static void rmse(KernelsGrpc.KernelsBlockingStub kernels) throws Exception {
    float[] a = new float[20000];
    float[] b = new float[20000];
    double sum = 0;
    for (int i = 0; i < a.length; i++) {
      a[i] = (i % 1009) / 8f;
      b[i] = (i % 997) / 16f;
      double d = (double) a[i] - b[i];
      sum += d * d;
    }
    RmseRequest request = RmseRequest.newBuilder().setA(operand(a)).setB(operand(b)).build();
    ByteString data = patiently(() -> kernels.rmse(request)).getResult().getData();
    double got = data.asReadOnlyByteBuffer().order(ByteOrder.LITTLE_ENDIAN).getDouble(); // of all axes: one f64
    double want = Math.sqrt(sum / a.length);
    System.out.println("rmse " + got + ", computed here " + want);
    expect(Math.abs(got - want) <= 1e-12 * want, "rmse");
  }

  /** What is in an error: a code and words for people, reason, field, value and allowed for programs. */
  static void refused(KernelsGrpc.KernelsBlockingStub kernels) throws Exception {
    GaussianOp impossible = NORMAL.toBuilder().setStddev(-1).build();
    GaussianPdfRequest request = GaussianPdfRequest.newBuilder().setOp(impossible).setInput(operand(new float[] {1})).build();
    try {
      patiently(() -> kernels.gaussianPdf(request));
    } catch (StatusRuntimeException e) {
      for (Any detail : StatusProto.fromThrowable(e).getDetailsList()) {
        if (!detail.is(ErrorInfo.class)) continue;
        ErrorInfo info = detail.unpack(ErrorInfo.class);
        System.out.printf("refused: code %d, reason %s, field %s, value %s, allowed %s%n", e.getStatus().getCode().value(),
            info.getReason(), info.getMetadataOrDefault("field", ""), info.getMetadataOrDefault("value", ""),
            info.getMetadataOrDefault("allowed", ""));
        return;
      }
    }
    expect(false, "a negative stddev was not refused with details");
  }

  /** Streams an array of several chunks and compares every value. */
  static void gaussianPdf(KernelsGrpc.KernelsStub kernels) throws Exception {
    float[] x = new float[1000003];
    for (int i = 0; i < x.length; i++) x[i] = i / (float) (1 << 17) - 4;
    Stream stream = patiently(() -> {
      Stream attempt = new Stream(x);
      kernels.execute(attempt);
      return attempt.finished();
    });
    ByteBuffer y = stream.answer.asReadOnlyByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    expect(y.remaining() == 4 * x.length, "length of the gaussian pdf");
    double worst = 0;
    double sum = 0;
    for (float value : x) {
      double z = (value - NORMAL.getMean()) / NORMAL.getStddev();
      double want = Math.exp(-z * z / 2) / (NORMAL.getStddev() * Math.sqrt(2 * Math.PI));
      double got = y.getFloat();
      worst = Math.max(worst, Math.abs(got - want) / want);
      sum += got;
    }
    System.out.printf("gaussian pdf of %d values in %d chunks, sum %s, relative difference at most %.2g%n", x.length,
        stream.chunks, sum, worst);
    expect(worst < 1.2e-7, "gaussian pdf"); // one ulp of an f32
  }

  /**
   * One streamed call: Open, chunks once the server has Opened and while gRPC takes them, and output, which may come while
   * input is still sent. gRPC calls these methods one at a time.
   */
  static final class Stream implements ClientResponseObserver<ExecuteRequest, ExecuteResponse> {
    final CompletableFuture<Stream> end = new CompletableFuture<>();
    final float[] x;
    final ByteString data;
    ClientCallStreamObserver<ExecuteRequest> requests;
    int size; // of a chunk, bytes; 0 until Opened
    int at;
    int chunks;
    ByteString answer = ByteString.EMPTY;

    Stream(float[] x) {
      this.x = x;
      this.data = little(x);
    }

    @Override
    public void beforeStart(ClientCallStreamObserver<ExecuteRequest> requests) {
      this.requests = requests;
      requests.setOnReadyHandler(this::send);
    }

    /** Waits for the end; the error is that of the call. */
    Stream finished() throws Exception {
      Open open = Open.newBuilder().setGaussianPdf(NORMAL).addOperands(spec(x)).build();
      requests.onNext(ExecuteRequest.newBuilder().setOpen(open).build());
      try {
        return end.get();
      } catch (ExecutionException e) {
        throw (Exception) e.getCause();
      }
    }

    @Override
    public void onNext(ExecuteResponse reply) {
      switch (reply.getMessageCase()) {
        case OPENED -> {
          size = chunkBytes(reply.getOpened());
          send();
        }
        case CHUNK -> answer = answer.concat(reply.getChunk().getData()); // they ascend
        case RESULT -> answer = answer.concat(reply.getResult().getResults(0).getData()); // up to 64 KiB, without chunks
        default -> { } // of a newer server
      }
    }

    /** Sends the only operand in ascending chunks. The checksum may be left out. */
    void send() {
      while (size > 0 && at < data.size() && requests.isReady()) {
        ByteString piece = data.substring(at, Math.min(at + size, data.size()));
        CRC32C checksum = new CRC32C();
        checksum.update(piece.asReadOnlyByteBuffer());
        Chunk chunk = Chunk.newBuilder().setOperand(0).setOffset(at).setCrc32C((int) checksum.getValue()).setData(piece).build();
        requests.onNext(ExecuteRequest.newBuilder().setChunk(chunk).build());
        at += piece.size();
        chunks++;
        if (at == data.size()) requests.onCompleted();
      }
    }

    @Override
    public void onError(Throwable error) {
      end.completeExceptionally(error);
    }

    @Override
    public void onCompleted() {
      end.complete(this);
    }
  }

  /**
   * A block of the job, as the server has just said, but no more than 1 MiB, which is best, and than a message holds beside
   * its other fields.
   */
  static int chunkBytes(Opened opened) {
    return (int) Math.min(1 << 20, Math.min(opened.getBlockBytes(), opened.getMaxMessageBytes() - (64 << 10)));
  }

  interface Call<T> {
    T run() throws Exception;
  }

  /**
   * Repeats a call for as long as the server is BUSY and says after how many milliseconds to come again. Without that, as of
   * a LIMIT, coming again is of no use.
   */
  static <T> T patiently(Call<T> call) throws Exception {
    while (true) {
      try {
        return call.run();
      } catch (StatusRuntimeException e) {
        String pushback = e.getTrailers() == null ? null : e.getTrailers().get(PUSHBACK);
        if (e.getStatus().getCode() != Status.Code.RESOURCE_EXHAUSTED || pushback == null) throw e;
        long pause = Long.parseLong(pushback);
        if (pause < 0 || DEADLINE.timeRemaining(TimeUnit.MILLISECONDS) < pause) throw e;
        System.out.printf("busy: %s; again in %d ms%n", e.getStatus().getDescription(), pause);
        // So that those who were refused together do not come again together.
        Thread.sleep(pause + ThreadLocalRandom.current().nextLong(pause / 5 + 1));
      }
    }
  }

  static ArraySpec spec(float[] x) {
    return ArraySpec.newBuilder().setDtype(DType.DTYPE_F32).addShape(x.length).build();
  }

  static Operand operand(float[] x) {
    return Operand.newBuilder().setSpec(spec(x)).setData(little(x)).build();
  }

  /** The array as it travels: little-endian, the last axis fastest. */
  static ByteString little(float[] x) {
    ByteBuffer data = ByteBuffer.allocate(4 * x.length).order(ByteOrder.LITTLE_ENDIAN);
    data.asFloatBuffer().put(x);
    return ByteString.copyFrom(data);
  }

  static void expect(boolean right, String what) {
    if (right) return;
    System.err.println("wrong: " + what);
    System.exit(1);
  }
}
